# ruff: noqa: E501 (the lines of real transcripts are long)
"""What is read from the transcripts of the agent CLIs. The lines are from real runs, without unused fields."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.errors import FairleadError, UnknownName
from fairlead.hosts.clis.mapping import host_tools
from fairlead.hosts.clis.transcripts import transcript
from fairlead.hosts.clis.transcripts.decisions import CallDecision, SessionDecisions, digest_of
from fairlead.hosts.clis.transcripts.transcript import (
    HOSTS,
    TranscriptEntry,
    TranscriptSource,
    timestamp_of,
    transcripts_of,
)

CLAUDE = r"""
{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-16T05:04:29.360Z","sessionId":"d56f","content":"please do it"}
{"parentUuid":null,"isSidechain":false,"promptId":"4a28","type":"user","message":{"role":"user","content":"please do it"},"uuid":"82e9","timestamp":"2026-11-16T05:04:29.441Z","permissionMode":"bypassPermissions","cwd":"/home/dev/proj","sessionId":"d56f","version":"2.1.325"}
{"isSidechain":false,"message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"echo a"}}],"stop_reason":"tool_use"},"type":"assistant","uuid":"1a1f","timestamp":"2026-11-16T05:04:31.911Z","cwd":"/home/dev/proj","sessionId":"d56f"}
{"isSidechain":false,"message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_2","name":"Bash","input":{"command":"cat /nonexistent; exit 3"}}],"stop_reason":"tool_use"},"type":"assistant","uuid":"494a","timestamp":"2026-11-16T05:04:31.956Z","cwd":"/home/dev/proj","sessionId":"d56f"}
{"isSidechain":false,"promptId":"4a28","type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"a","is_error":false}]},"uuid":"076b","timestamp":"2026-11-16T05:04:32.208Z","toolUseResult":{"stdout":"a","stderr":""},"permissionDecision":{"decision":"accept","source":"config","reasonType":"mode"},"cwd":"/home/dev/proj","sessionId":"d56f"}
{"isSidechain":false,"promptId":"4a28","type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"Exit code 3\ncat: /nonexistent: No such file or directory","is_error":true,"tool_use_id":"toolu_2"}]},"uuid":"f94d","timestamp":"2026-11-16T05:04:32.267Z","sessionId":"d56f"}
{"isSidechain":false,"message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_5","name":"Bash","input":{"command":"echo forbidden"}}],"stop_reason":"tool_use"},"type":"assistant","uuid":"d2b2","timestamp":"2026-11-16T05:04:32.271Z","sessionId":"d56f"}
{"isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"PreToolUse:Bash hook error: not here","is_error":true,"tool_use_id":"toolu_5"}]},"uuid":"8637","timestamp":"2026-11-16T05:04:32.332Z","toolDenialKind":"permission-rule","permissionDecision":{"decision":"reject","source":"hook","reasonType":"hook","reasonCode":"hook:PreToolUse"},"sessionId":"d56f"}
{"isSidechain":false,"message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_6","name":"NoSuchTool","input":{"x":1}}],"stop_reason":"tool_use"},"type":"assistant","uuid":"388e","timestamp":"2026-11-16T05:04:32.520Z","sessionId":"d56f"}
{"isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"<tool_use_error>Error: No such tool available: NoSuchTool</tool_use_error>","is_error":true,"tool_use_id":"toolu_6"}]},"uuid":"ad29","timestamp":"2026-11-16T05:04:32.525Z","sessionId":"d56f"}
{"isSidechain":false,"message":{"role":"assistant","content":[{"type":"text","text":"all done"}],"stop_reason":"end_turn"},"type":"assistant","uuid":"dcb3","timestamp":"2026-11-16T05:04:33.639Z","sessionId":"d56f"}
{"isSidechain":false,"promptId":"fb0d","type":"user","message":{"role":"user","content":"<task-notification>\n<task-id>a843</task-id>\n</task-notification>"},"uuid":"21a6","timestamp":"2026-11-16T05:04:34.255Z","origin":{"kind":"task-notification"},"sessionId":"d56f"}
"""
CLAUDE_SUBAGENT = r"""
{"parentUuid":null,"isSidechain":true,"promptId":"4a28","agentId":"a843","type":"user","message":{"role":"user","content":"do it"},"uuid":"6373","timestamp":"2026-11-16T05:04:33.021Z","cwd":"/home/dev/proj","sessionId":"d56f"}
{"isSidechain":true,"agentId":"a843","message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_8","name":"Bash","input":{"command":"echo sub1"}}],"stop_reason":"tool_use"},"attributionAgent":"general-purpose","type":"assistant","uuid":"a6b6","timestamp":"2026-11-16T05:04:33.421Z","sessionId":"d56f"}
{"isSidechain":true,"agentId":"a843","type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_8","type":"tool_result","content":"sub1","is_error":false}]},"uuid":"77aa","timestamp":"2026-11-16T05:04:33.500Z","sessionId":"d56f"}
{"isSidechain":true,"agentId":"a843","message":{"role":"assistant","content":[{"type":"text","text":"waiting"}],"stop_reason":"end_turn"},"attributionAgent":"general-purpose","type":"assistant","uuid":"a6b7","timestamp":"2026-11-16T05:04:33.600Z","sessionId":"d56f"}
"""
CODEX = r"""
{"timestamp":"2026-11-16T05:04:36.501Z","ordinal":0,"type":"session_meta","payload":{"session_id":"01a1","id":"01a1","timestamp":"2026-11-16T05:04:36.469Z","cwd":"/home/dev/proj","originator":"codex_exec","cli_version":"0.166.0","source":"exec","thread_source":"user"}}
{"timestamp":"2026-11-16T05:04:36.673Z","ordinal":3,"type":"response_item","payload":{"type":"message","id":"msg_0","role":"user","content":[{"type":"input_text","text":"<environment_context>\n  <cwd>/home/dev/proj</cwd>\n</environment_context>"}]}}
{"timestamp":"2026-11-16T05:04:36.687Z","ordinal":5,"type":"turn_context","payload":{"turn_id":"t1","cwd":"/home/dev/proj","approval_policy":"never","model":"gpt-5.5"}}
{"timestamp":"2026-11-16T05:04:36.750Z","ordinal":7,"type":"response_item","payload":{"type":"message","id":"msg_1","role":"user","content":[{"type":"input_text","text":"please do it"}]}}
{"timestamp":"2026-11-16T05:04:36.820Z","ordinal":9,"type":"response_item","payload":{"type":"function_call","status":"completed","id":"fc_1_0","name":"exec_command","arguments":"{\"cmd\": \"echo hello\"}","call_id":"call_1_0"}}
{"timestamp":"2026-11-16T05:04:36.946Z","ordinal":11,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{"type":"CommandExecution","id":"call_1_0","command":["/bin/bash","-lc","echo hello"],"status":"completed","aggregated_output":"hello\n","exit_code":0}}}
{"timestamp":"2026-11-16T05:04:36.976Z","ordinal":12,"type":"response_item","payload":{"type":"function_call_output","id":"fco_1","call_id":"call_1_0","output":"Chunk ID: 80dd8e\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 2\nOutput:\nhello\n"}}
{"timestamp":"2026-11-16T05:04:37.226Z","ordinal":19,"type":"response_item","payload":{"type":"custom_tool_call","id":"ctc_3_0","status":"completed","call_id":"call_3_0","name":"apply_patch","input":"*** Begin Patch\n*** Add File: new.txt\n+one\n*** End Patch\n"}}
{"timestamp":"2026-11-16T05:04:37.283Z","ordinal":22,"type":"response_item","payload":{"type":"custom_tool_call_output","id":"ctco_1","call_id":"call_3_0","output":"Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nA new.txt\n"}}
{"timestamp":"2026-11-16T05:04:37.563Z","ordinal":32,"type":"response_item","payload":{"type":"function_call","status":"completed","id":"fc_5_0","name":"exec_command","arguments":"{\"cmd\": \"echo forbidden\"}","call_id":"call_5_0"}}
{"timestamp":"2026-11-16T05:04:37.613Z","ordinal":34,"type":"response_item","payload":{"type":"function_call_output","id":"fco_5","call_id":"call_5_0","output":"Command blocked by PreToolUse hook: not here. Command: echo forbidden"}}
{"timestamp":"2026-11-16T05:04:37.651Z","ordinal":36,"type":"response_item","payload":{"type":"function_call","status":"completed","id":"fc_6_0","name":"NoSuchTool","arguments":"{\"x\": 1}","call_id":"call_6_0"}}
{"timestamp":"2026-11-16T05:04:37.691Z","ordinal":38,"type":"response_item","payload":{"type":"function_call_output","id":"fco_6","call_id":"call_6_0","output":"unsupported call: NoSuchTool"}}
{"timestamp":"2026-11-16T05:18:29.546Z","ordinal":9,"type":"response_item","payload":{"type":"function_call","status":"completed","id":"fc_7_0","name":"greet","namespace":"mcp__srv","arguments":"{\"name\": \"bob\"}","call_id":"call_7_0"}}
{"timestamp":"2026-11-16T05:18:29.573Z","ordinal":12,"type":"response_item","payload":{"type":"function_call_output","id":"fco_7","call_id":"call_7_0","output":[{"type":"input_text","text":"Wall time: 0.0028 seconds\nOutput:"},{"type":"input_text","text":"hello bob"}]}}
{"timestamp":"2026-11-16T05:04:37.800Z","ordinal":44,"type":"event_msg","payload":{"type":"task_complete","turn_id":"t1","last_agent_message":"all done","duration_ms":1302}}
"""
CODEX_PROGRAM = r"""
{"timestamp":"2026-11-16T05:11:48.916Z","ordinal":0,"type":"session_meta","payload":{"session_id":"01b2","id":"01b2","cwd":"/home/dev/proj"}}
{"timestamp":"2026-11-16T05:11:49.202Z","ordinal":13,"type":"response_item","payload":{"type":"custom_tool_call","id":"ctc_1_0","status":"completed","call_id":"call_1_0","name":"exec","input":"await tools.exec_command({cmd:\"echo nested\"});"}}
{"timestamp":"2026-11-16T05:11:49.376Z","ordinal":15,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{"type":"CommandExecution","id":"exec-477a","command":["/bin/bash","-lc","echo nested"],"status":"completed","aggregated_output":"nested\n","exit_code":0}}}
{"timestamp":"2026-11-16T05:11:49.475Z","ordinal":16,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{"type":"FileChange","id":"exec-9d96","changes":{"/home/dev/proj/nn.txt":{"type":"add","content":"one\n"}},"status":"completed","stdout":"Success. Updated the following files:\nA nn.txt\n","stderr":""}}}
{"timestamp":"2026-11-16T05:18:30.495Z","ordinal":15,"type":"event_msg","payload":{"type":"item_completed","turn_id":"t1","item":{"type":"McpToolCall","id":"exec-99e4","server":"srv","tool":"greet","arguments":{"name":"bob"},"status":"completed","result":{"content":[{"type":"text","text":"hello bob"}]}}}}
"""
CODEX_SUBAGENT = r"""
{"timestamp":"2026-11-16T05:11:28.619Z","ordinal":0,"type":"session_meta","payload":{"session_id":"01a1","id":"01c3","parent_thread_id":"01a1","cwd":"/home/dev/proj","thread_source":"subagent","agent_nickname":"Ramanujan"}}
{"timestamp":"2026-11-16T05:11:28.930Z","ordinal":9,"type":"response_item","payload":{"type":"function_call","status":"completed","id":"fc_3_0","name":"exec_command","arguments":"{\"cmd\": \"echo sub2\"}","call_id":"call_8_0"}}
{"timestamp":"2026-11-16T05:11:29.327Z","ordinal":19,"type":"event_msg","payload":{"type":"turn_aborted","turn_id":"t3","reason":"interrupted","duration_ms":711}}
"""
GEMINI = r"""
{"sessionId":"a34c","projectHash":"f0da","startTime":"2026-11-16T05:04:45.127Z","lastUpdated":"2026-11-16T05:04:45.127Z","kind":"main"}
{"$set":{"messages":[{"id":"d049","timestamp":"2026-11-16T05:04:45.128Z","type":"user","content":[{"text":"<session_context>\nThis is the Gemini CLI.\n</session_context>"}]}],"lastUpdated":"2026-11-16T05:04:45.128Z"}}
{"id":"5b52","timestamp":"2026-11-16T05:04:45.324Z","type":"user","content":[{"text":"please do it"}]}
{"id":"3751","timestamp":"2026-11-16T05:04:46.333Z","type":"gemini","content":"","thoughts":[],"model":"gemini-2.5-flash"}
{"$set":{"lastUpdated":"2026-11-16T05:04:46.333Z"}}
{"id":"3751","timestamp":"2026-11-16T05:04:46.333Z","type":"gemini","content":"","toolCalls":[{"id":"run_shell_command__call_1_0","name":"run_shell_command","args":{"command":"echo hello"},"result":[{"functionResponse":{"id":"run_shell_command__call_1_0","name":"run_shell_command","response":{"output":"Output: hello"}}}],"status":"success","timestamp":"2026-11-16T05:04:47.077Z","resultDisplay":"hello"}]}
{"id":"02c7","timestamp":"2026-11-16T05:04:47.129Z","type":"user","content":[{"functionResponse":{"id":"run_shell_command__call_1_0","name":"run_shell_command","response":{"output":"Output: hello"}}}]}
{"id":"8d32","timestamp":"2026-11-16T05:14:39.149Z","type":"gemini","content":"","toolCalls":[{"id":"run_shell_command__call_5_0","name":"run_shell_command","args":{"command":"echo forbidden"},"result":[{"functionResponse":{"id":"run_shell_command__call_5_0","name":"run_shell_command","response":{"error":"Tool execution blocked: not here"}}}],"status":"error","timestamp":"2026-11-16T05:14:39.269Z"}]}
{"id":"f120","timestamp":"2026-11-16T05:14:49.918Z","type":"gemini","content":"","toolCalls":[{"id":"NoSuchTool__call_6_0","name":"NoSuchTool","args":{"x":1},"result":[{"functionResponse":{"id":"NoSuchTool__call_6_0","name":"NoSuchTool","response":{"error":"Tool \"NoSuchTool\" not found. Did you mean one of: \"glob\", \"write_todos\"?"}}}],"status":"error","timestamp":"2026-11-16T05:14:49.936Z"}]}
{"id":"e497","timestamp":"2026-11-16T05:14:49.989Z","type":"gemini","content":"all done","thoughts":[],"model":"gemini-2.5-flash"}
"""
GEMINI_SUBAGENT = r"""
{"sessionId":"02a6","projectHash":"f0da","startTime":"2026-11-16T05:09:13.271Z","kind":"subagent","directories":["/home/dev/proj"]}
{"id":"1488","timestamp":"2026-11-16T05:09:13.312Z","type":"user","content":[{"text":"do it"}]}
{"id":"8457","timestamp":"2026-11-16T05:09:13.423Z","type":"gemini","content":"","toolCalls":[{"id":"run_shell_command__call_2_0","name":"run_shell_command","args":{"command":"echo sub1"},"result":[{"functionResponse":{"id":"run_shell_command__call_2_0","name":"run_shell_command","response":{"output":"Output: sub1"}}}],"status":"success","timestamp":"2026-11-16T05:09:14.000Z"}]}
"""
QWEN = r"""
{"uuid":"735a","parentUuid":null,"sessionId":"d976","timestamp":"2026-11-16T05:07:48.240Z","type":"user","provenance":"real_user","cwd":"/home/dev/proj","version":"0.24.4","message":{"role":"user","parts":[{"text":"please do it"}]}}
{"uuid":"7bfe","sessionId":"d976","timestamp":"2026-11-16T05:07:50.971Z","type":"system","subtype":"ui_telemetry","systemPayload":{"uiEvent":{"event.name":"qwen-code.api_response"}}}
{"uuid":"33d9","sessionId":"d976","timestamp":"2026-11-16T05:07:50.972Z","type":"assistant","cwd":"/home/dev/proj","message":{"role":"model","parts":[{"functionCall":{"id":"call_1_0","name":"run_shell_command","args":{"command":"echo hello","is_background":false}}}]}}
{"uuid":"8282","sessionId":"d976","timestamp":"2026-11-16T05:07:51.904Z","type":"tool_result","cwd":"/home/dev/proj","message":{"role":"user","parts":[{"functionResponse":{"id":"call_1_0","name":"run_shell_command","response":{"output":"Command: echo hello\nOutput: hello\nExit Code: 0"}}}]},"toolCallResult":{"callId":"call_1_0","status":"success","executionStatus":"success"}}
{"uuid":"65cc","sessionId":"d976","timestamp":"2026-11-16T05:07:53.687Z","type":"assistant","message":{"role":"model","parts":[{"functionCall":{"id":"call_5_0","name":"run_shell_command","args":{"command":"echo forbidden","is_background":false}}}]}}
{"uuid":"7e8e","sessionId":"d976","timestamp":"2026-11-16T05:07:53.751Z","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"call_5_0","name":"run_shell_command","response":{"error":"not here"}}}]},"toolCallResult":{"callId":"call_5_0","status":"error","errorType":"execution_denied","executionStatus":"not_started"}}
{"uuid":"792c","sessionId":"d976","timestamp":"2026-11-16T05:07:53.983Z","type":"assistant","message":{"role":"model","parts":[{"functionCall":{"id":"call_6_0","name":"NoSuchTool","args":{"x":1}}}]}}
{"uuid":"17cb","sessionId":"d976","timestamp":"2026-11-16T05:07:53.997Z","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"call_6_0","name":"NoSuchTool","response":{"error":"Tool \"NoSuchTool\" not found in registry."}}}]},"toolCallResult":{"callId":"call_6_0","status":"error","errorType":"tool_not_registered","executionStatus":"not_started"}}
{"uuid":"9648","sessionId":"d976","timestamp":"2026-11-16T05:07:54.159Z","type":"assistant","message":{"role":"model","parts":[{"text":"all done"}]}}
"""
QWEN_SUBAGENT = r"""
{"uuid":"124f","sessionId":"d976","timestamp":"2026-11-16T05:09:44.265Z","type":"user","cwd":"/home/dev/proj","agentId":"general-purpose-call_1_0","agentName":"general-purpose","isSidechain":true,"message":{"role":"user","parts":[{"text":"do it"}]}}
{"uuid":"728f","sessionId":"d976","timestamp":"2026-11-16T05:09:47.638Z","type":"assistant","cwd":"/home/dev/proj","agentId":"general-purpose-call_1_0","agentName":"general-purpose","isSidechain":true,"message":{"role":"model","parts":[{"functionCall":{"id":"call_2_0","name":"run_shell_command","args":{"command":"echo sub1","is_background":false}}}]}}
"""
COPILOT = r"""
{"type":"session.start","data":{"sessionId":"d5ec","version":1,"copilotVersion":"1.0.102","startTime":"2026-11-16T05:04:59.228Z","context":{"cwd":"/home/dev/proj"}},"id":"3288","timestamp":"2026-11-16T05:04:59.304Z","parentId":null}
{"type":"user.message","data":{"content":"please do it","messageId":"af86","turnId":"0"},"id":"b85f","timestamp":"2026-11-16T05:04:59.801Z"}
{"type":"tool.execution_start","data":{"toolCallId":"call_1_0","toolName":"bash","arguments":{"command":"echo hello","description":"a command"},"turnId":"0"},"id":"1ecf","timestamp":"2026-11-16T05:04:59.887Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"call_1_0","turnId":"0","shellExecution":{"exitCode":0},"success":true,"result":{"content":"hello\n<shellId: 0 completed with exit code 0>"}},"id":"f731","timestamp":"2026-11-16T05:05:00.053Z"}
{"type":"tool.execution_start","data":{"toolCallId":"call_5_0","toolName":"bash","arguments":{"command":"echo forbidden","description":"a command"},"turnId":"0"},"id":"48ac","timestamp":"2026-11-16T05:14:50.184Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"call_5_0","turnId":"0","success":false,"error":{"message":"Denied by preToolUse hook: not here","code":"denied"}},"id":"ba48","timestamp":"2026-11-16T05:14:50.198Z"}
{"type":"tool.execution_start","data":{"toolCallId":"call_6_0","toolName":"NoSuchTool","arguments":{"x":1},"turnId":"2"},"id":"58ed","timestamp":"2026-11-16T05:05:00.304Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"call_6_0","turnId":"2","success":false,"error":{"message":"Tool 'NoSuchTool' does not exist.","code":"failure"}},"id":"118e","timestamp":"2026-11-16T05:05:00.307Z"}
{"type":"subagent.started","data":{"toolCallId":"call_3_0","agentName":"general-purpose","agentType":"general-purpose"},"agentId":"8582","id":"1429","timestamp":"2026-11-16T05:09:55.806Z"}
{"type":"user.message","data":{"content":"do it","source":"agent-d5ec"},"agentId":"8582","id":"defe","timestamp":"2026-11-16T05:09:55.841Z"}
{"type":"tool.execution_start","data":{"toolCallId":"call_4_0","toolName":"bash","arguments":{"command":"echo sub1","description":"a command"},"parentToolCallId":"call_3_0"},"agentId":"8582","id":"99ab","timestamp":"2026-11-16T05:09:55.895Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"call_4_0","success":true,"result":{"content":"sub1"},"parentToolCallId":"call_3_0"},"agentId":"8582","id":"5819","timestamp":"2026-11-16T05:09:55.950Z"}
{"type":"subagent.completed","data":{"toolCallId":"call_3_0","agentName":"general-purpose","totalToolCalls":1},"agentId":"8582","id":"ac4f","timestamp":"2026-11-16T05:09:56.111Z"}
{"type":"assistant.message","data":{"messageId":"925f","content":"all done","toolRequests":[]},"id":"a435","timestamp":"2026-11-16T05:05:00.829Z"}
{"type":"session.shutdown","data":{"shutdownType":"routine"},"id":"5d00","timestamp":"2026-11-16T05:05:00.900Z"}
"""
DROID = r"""
{"type":"session_start","id":"736e","title":"please do it","version":2,"cwd":"/home/dev/proj"}
{"type":"message","id":"context-c880","timestamp":"2026-11-16T05:05:48.339Z","message":{"role":"user","content":[{"type":"text","text":"<system-reminder>\nThe tools listed below are available.\n</system-reminder>"}]}}
{"type":"message","id":"c880","parentId":"context-c880","timestamp":"2026-11-16T05:05:48.356Z","message":{"role":"user","content":[{"type":"text","text":"please do it"}]}}
{"type":"message","id":"97f1","timestamp":"2026-11-16T05:05:49.492Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"call_1_0","name":"Execute","input":{"command":"echo hello","riskLevel":"low"}}]}}
{"type":"message","id":"216b","timestamp":"2026-11-16T05:05:49.742Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1_0","is_error":false,"content":"hello\n\n\n[Process exited with code 0]"}]}}
{"type":"message","id":"466b","timestamp":"2026-11-16T05:05:51.423Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"call_5_0","name":"Execute","input":{"command":"echo forbidden","riskLevel":"low"}}]}}
{"type":"message","id":"cb81","timestamp":"2026-11-16T05:05:51.577Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_5_0","is_error":true,"content":"Error: not here"}]}}
{"type":"message","id":"ab37","timestamp":"2026-11-16T05:05:51.782Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"call_6_0","name":"NoSuchTool","input":{"x":1}}]}}
{"type":"message","id":"8f9c","timestamp":"2026-11-16T05:05:51.842Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_6_0","is_error":true,"content":"Error: Not found: NoSuchTool. Only request exact tool names."}]}}
{"type":"message","id":"6da2","timestamp":"2026-11-16T05:05:51.988Z","message":{"role":"assistant","content":[{"type":"text","text":"all done"}]}}
{"type":"agent_turn_outcome","turnId":"c880","reason":"completed","resultKind":"text"}
"""
DROID_SUBAGENT = r"""
{"type":"session_start","id":"33d1","title":"Worker: sub","callingSessionId":"736e","callingToolUseId":"call_1_0","version":2,"cwd":"/home/dev/proj"}
{"type":"message","id":"01f6","timestamp":"2026-11-16T05:11:12.935Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"call_3_0","name":"Execute","input":{"command":"echo sub2","riskLevel":"low"}}]}}
"""
CLINE = {
    "version": 1, "agent": "lead", "sessionId": "1794_yhh5a", "origin": {"source": "cli", "mode": "user"},
    "messages": [
        {"id": "5098", "role": "user", "ts": 1794805509467,
         "content": [{"type": "text", "text": '<user_input mode="act">please do it</user_input>'}]},
        {"id": "msg_s58C", "role": "assistant", "ts": 1794805510249,
         "content": [{"type": "tool_use", "id": "call_1_0", "name": "run_commands", "input": {"commands": ["echo hello"]}}]},
        {"id": "msg_2o4Q", "role": "user", "ts": 1794805510363,
         "content": [{"type": "tool_result", "tool_use_id": "call_1_0", "name": "run_commands",
                      "content": [{"query": "echo hello", "result": "hello\n", "success": True}]}]},
        {"id": "msg_9qYI", "role": "assistant", "ts": 1794806115970,
         "content": [{"type": "tool_use", "id": "call_5_0", "name": "run_commands", "input": {"commands": ["echo forbidden"]}}]},
        {"id": "msg_qekol", "role": "user", "ts": 1794806116257,
         "content": [{"type": "tool_result", "tool_use_id": "call_5_0", "name": "run_commands",
                      "content": '{"error":"✖ Invalid input"}', "is_error": True}]},
        {"id": "msg_9lGU", "role": "user", "ts": 1794806116283, "metadata": {"displayRole": "system"},
         "content": [{"type": "text", "text": '<hook_context source="PreToolUse">\nnot here\n</hook_context>'}]},
        {"id": "msg_4NKM", "role": "assistant", "ts": 1794805512454,
         "content": [{"type": "tool_use", "id": "call_6_0", "name": "NoSuchTool", "input": {"x": 1}}]},
        {"id": "msg_e-_F", "role": "user", "ts": 1794805512515,
         "content": [{"type": "tool_result", "tool_use_id": "call_6_0", "name": "NoSuchTool", "is_error": True,
                      "content": '{"error":"Tool call NoSuchTool was rejected before execution: AI_NoSuchToolError"}'}]},
        {"id": "msg_6otU", "role": "assistant", "ts": 1794805512892, "content": [{"type": "text", "text": "all done"}]},
    ],
}  # fmt: skip
CLINE_SUBAGENT = {
    "version": 1, "agent": "subagent", "sessionId": "1794_yhh5a__agent_32hx",
    "origin": {"source": "cli", "mode": "subagent", "parentThreadId": "1794_yhh5a", "subagent": "agent_32hx"},
    "messages": [
        {"id": "fec3", "role": "user", "ts": 1794805810054, "content": [{"type": "text", "text": "do it"}]},
        {"id": "msg_NaB7", "role": "assistant", "ts": 1794805810529,
         "content": [{"type": "tool_use", "id": "call_2_0", "name": "run_commands", "input": {"commands": ["echo sub1"]}}]},
    ],
}  # fmt: skip
OPENCODE = {
    "session": [
        ("ses_e1d4", None, "/home/dev/proj", "build", 1794805527867),
        ("ses_e1d3", "ses_e1d4", "/home/dev/proj", "general", 1794805852640),
    ],
    "message": [
        ("msg_1", "ses_e1d4", 1794805528500, {"role": "user", "time": {"created": 1794805528500}, "agent": "build"}),
        ("msg_2", "ses_e1d4", 1794805532889, {"parentID": "msg_1", "role": "assistant", "finish": "tool-calls"}),
        ("msg_3", "ses_e1d3", 1794805853135, {"role": "assistant", "agent": "general", "finish": "tool-calls"}),
    ],
    "part": [
        ("prt_1", "msg_1", "ses_e1d4", 1794805532819, {"type": "text", "text": "please do it"}),
        ("prt_2", "msg_2", "ses_e1d4", 1794805534036, {"type": "step-start"}),
        ("prt_3", "msg_2", "ses_e1d4", 1794805534072, {
            "type": "tool", "tool": "bash", "callID": "call_1_0",
            "state": {"status": "completed", "input": {"command": "echo hello"}, "output": "hello\n",
                      "time": {"start": 1794805534180, "end": 1794805537986}}}),
        ("prt_4", "msg_2", "ses_e1d4", 1794806136670, {
            "type": "tool", "tool": "bash", "callID": "call_5_0",
            "state": {"status": "error", "input": {"command": "echo forbidden"}, "error": "not here",
                      "time": {"start": 1794806136676, "end": 1794806136681}}}),
        ("prt_5", "msg_2", "ses_e1d4", 1794806142039, {
            "type": "tool", "tool": "invalid", "callID": "call_6_0",
            "state": {"status": "completed", "input": {"tool": "NoSuchTool", "error": "Model tried to call it"},
                      "output": "The arguments provided to the tool are invalid",
                      "time": {"start": 1794806142132, "end": 1794806142177}}}),
        ("prt_6", "msg_2", "ses_e1d4", 1794806142441, {"type": "step-finish", "reason": "stop"}),
        ("prt_7", "msg_3", "ses_e1d3", 1794805853678, {
            "type": "tool", "tool": "bash", "callID": "call_2_0",
            "state": {"status": "running", "input": {"command": "echo sub1"}, "time": {"start": 1794805853748}}}),
    ],
}  # fmt: skip
TABLES = """
CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text NOT NULL, agent text, time_created integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text, time_created integer, data text);
"""
LINES = {
    "claude_code": ("d56f.jsonl", CLAUDE), "codex": ("rollout-2026-01a1.jsonl", CODEX), "qwen": ("d976.jsonl", QWEN),
    "gemini": ("chats/session-2026-a34c.jsonl", GEMINI), "copilot": ("d5ec/events.jsonl", COPILOT),
    "droid": ("736e.jsonl", DROID), "cline": ("1794_yhh5a.messages.json", json.dumps(CLINE)),
}  # fmt: skip
SUBAGENTS = {
    "claude_code": ("d56f/subagents/agent-a843.jsonl", CLAUDE_SUBAGENT),
    "codex": ("rollout-2026-01c3.jsonl", CODEX_SUBAGENT),
    "gemini": ("chats/a34c/02a6.jsonl", GEMINI_SUBAGENT),
    "qwen": ("agent-general-purpose-call_1_0.jsonl", QWEN_SUBAGENT),
    "copilot": ("d5ec/events.jsonl", COPILOT),
    "droid": ("33d1.jsonl", DROID_SUBAGENT),
    "cline": ("agent_32hx.messages.json", json.dumps(CLINE_SUBAGENT)),
}
SHELL = {
    "claude_code": "Bash", "codex": "Bash", "gemini": "run_shell_command", "qwen": "run_shell_command",
    "copilot": "bash", "droid": "Execute", "cline": "run_commands", "opencode": "bash",
}  # fmt: skip

Tell = Callable[..., list[TranscriptEntry]]


def opencode_database(path: Path) -> Path:
    with sqlite3.connect(path) as db:
        db.executescript(TABLES)
        for table, rows in OPENCODE.items():
            plain = [[json.dumps(cell) if isinstance(cell, dict) else cell for cell in row] for row in rows]
            db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(plain[0]))})", plain)
    db.close()
    return path


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    """What a CLI's transcript tells: its own sample, unless told otherwise."""

    def tell(host: str, text: str | None = None, name: str | None = None) -> list[TranscriptEntry]:
        if host == "opencode":
            path = opencode_database(tmp_path / "opencode.db")
        else:
            path = tmp_path / (name or LINES[host][0])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((text if text is not None else LINES[host][1]).lstrip("\n"))
        return list(transcripts_of(host).read(TranscriptSource(path)))

    return tell


def of_call(told: list[TranscriptEntry], call_id: str) -> list[TranscriptEntry]:
    return [one for one in told if one.fields.get("call_id", "").endswith(call_id)]


# --- every CLI ----------------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
def test_a_call_and_its_result_are_told(tell: Tell, host: str) -> None:
    first = "toolu_1" if host == "claude_code" else "call_1_0"
    before, after = of_call(tell(host), first)
    assert (before.event, after.event) == ("before_tool", "after_tool")
    assert before.fields["tool"] == after.fields["tool"] == SHELL[host]
    assert (after.fields["outcome"], after.fields["executed"]) == ("ok", True)


@pytest.mark.parametrize("host", HOSTS)
def test_a_call_becomes_a_step_of_the_right_kind(tell: Tell, host: str) -> None:
    first = "toolu_1" if host == "claude_code" else "call_1_0"
    step: Any = of_call(tell(host), first)[0].step(host, host_tools(), {})
    assert (step.host, step.kind, step.event) == (host, "shell", "before_tool")
    assert step.target.command.startswith("echo ")


@pytest.mark.parametrize("host", HOSTS)
def test_the_session_its_folder_and_its_beginning_are_told(tell: Tell, host: str, tmp_path: Path) -> None:
    (tmp_path / ".project_root").write_text("/home/dev/proj")  # where Gemini keeps it
    (tmp_path / "1794_yhh5a.json").write_text('{"cwd": "/home/dev/proj"}')  # and Cline
    told = [one for one in tell(host) if one.agent is None]
    assert told[0].event == "session_start"
    assert {one.cwd for one in told} == {"/home/dev/proj"}
    sessions = {"claude_code": "d56f", "codex": "01a1", "gemini": "a34c", "qwen": "d976", "copilot": "d5ec"}
    sessions |= {"droid": "736e", "cline": "1794_yhh5a", "opencode": "ses_e1d4"}
    assert {one.session_id for one in told} == {sessions[host]}


@pytest.mark.parametrize("host", HOSTS)
def test_what_the_user_said_is_told_once(tell: Tell, host: str) -> None:
    said = [
        one.fields["input"]
        for one in tell(host)
        if one.event == "before_input" and one.fields.get("source") != "background"
    ]
    assert said == ["please do it"]


@pytest.mark.parametrize("host", HOSTS)
def test_the_end_of_a_turn_is_told(tell: Tell, host: str) -> None:
    assert [one.event for one in tell(host)].count("before_turn_end") == 1


@pytest.mark.parametrize("host", HOSTS)
def test_a_refused_call_has_not_succeeded(tell: Tell, host: str) -> None:
    _, after = of_call(tell(host), "toolu_5" if host == "claude_code" else "call_5_0")
    told_apart = host not in ("droid", "cline", "opencode")  # which tell a refusal like any failure
    assert after.fields["outcome"] == ("denied" if told_apart else "error")
    assert after.fields["is_error"]
    assert after.fields["executed"] is (host in ("droid", "opencode"))


@pytest.mark.parametrize("host", HOSTS)
def test_a_call_of_no_tool_was_not_executed(tell: Tell, host: str) -> None:
    _, after = of_call(tell(host), "toolu_6" if host == "claude_code" else "call_6_0")
    assert (after.fields["outcome"], after.fields["executed"]) == ("error", False)


@pytest.mark.parametrize("host", HOSTS)
def test_each_moment_has_a_key_of_its_own(tell: Tell, host: str) -> None:
    keys = Counter((one.event, one.key, one.session_id, one.agent) for one in tell(host))
    assert set(keys.values()) == {1}


@pytest.mark.parametrize("host", HOSTS)
def test_the_same_is_told_again(tell: Tell, host: str, tmp_path: Path) -> None:
    first = tell(host)
    (tmp_path / "opencode.db").unlink(missing_ok=True)
    assert tell(host) == first


@pytest.mark.parametrize("host", HOSTS)
def test_times_are_told(tell: Tell, host: str) -> None:
    begin = timestamp_of("2026-11-16T05:04:00Z")
    assert begin is not None
    assert all(one.at is not None and begin < one.at < begin + 3600 for one in tell(host))


@pytest.mark.parametrize(
    ("host", "agent", "session"),
    [
        ("claude_code", "a843", "d56f"), ("codex", "01c3", "01a1"), ("gemini", "02a6", "a34c"),
        ("qwen", "general-purpose-call_1_0", "d976"), ("copilot", "8582", "d5ec"), ("droid", "33d1", "33d1"),
        ("cline", "agent_32hx", "1794_yhh5a"), ("opencode", "ses_e1d3", "ses_e1d3"),
    ],
)  # fmt: skip
def test_a_call_of_a_subagent_names_it_and_its_parent(tell: Tell, host: str, agent: str, session: str) -> None:
    name, text = SUBAGENTS.get(host, (None, None))
    told = [one for one in tell(host, text, name) if one.agent is not None]
    assert told[0].event == "subagent_start"
    call = next(one for one in told if one.event == "before_tool")
    assert call.agent is not None
    assert (call.agent.id, call.session_id) == (agent, session)
    assert call.agent.parent == {"droid": "736e", "opencode": "ses_e1d4"}.get(host, session)


def test_a_subagent_of_claudes_is_named_by_the_file_beside_its_own(tell: Tell, tmp_path: Path) -> None:
    name, text = SUBAGENTS["claude_code"]
    beside = (tmp_path / name).with_suffix(".meta.json")
    beside.parent.mkdir(parents=True)
    beside.write_text('{"agentType":"general-purpose","toolUseId":"toolu_7","spawnDepth":1}')
    first = tell("claude_code", text, name)[0]
    assert (first.fields["agent_name"], first.fields["initial_message"]) == ("general-purpose", "do it")


# --- one CLI ------------------------------------------------------------------------------------


def test_a_background_task_that_comes_back_is_not_the_users_word(tell: Tell) -> None:
    sources = [one.fields["source"] for one in tell("claude_code") if one.event == "before_input"]
    assert sources == ["user", "background"]


def test_a_failed_command_of_claudes_failed_and_ran(tell: Tell) -> None:
    _, after = of_call(tell("claude_code"), "toolu_2")
    assert (after.fields["outcome"], after.fields["executed"]) == ("error", True)
    assert after.fields["error"].startswith("Exit code 3")


def test_codex_calls_are_told_as_hooks_know_them(tell: Tell) -> None:
    told = [one.fields for one in tell("codex") if one.event == "before_tool"]
    assert [(call["tool"], call["args"]) for call in told] == [
        ("Bash", {"command": "echo hello"}),
        ("apply_patch", {"command": "*** Begin Patch\n*** Add File: new.txt\n+one\n*** End Patch\n"}),
        ("Bash", {"command": "echo forbidden"}),
        ("NoSuchTool", {"x": 1}),
        ("mcp__srv__greet", {"name": "bob"}),
    ]


def test_of_a_program_that_calls_tools_the_calls_are_told(tell: Tell) -> None:
    told = [one.fields for one in tell("codex", CODEX_PROGRAM) if one.event == "before_tool"]
    assert [(call["call_id"], call["tool"]) for call in told] == [
        ("exec-477a", "Bash"), ("exec-9d96", "apply_patch"), ("exec-99e4", "mcp__srv__greet"),
    ]  # fmt: skip
    assert told[0]["args"] == {"command": "echo nested"}


def test_a_command_that_ends_after_its_call_is_told_once(tell: Tell) -> None:
    lines = CODEX.strip().splitlines()
    ended = next(line for line in lines if "CommandExecution" in line)
    later = "\n".join([*(line for line in lines if line != ended), ended])
    assert len(of_call(tell("codex", later), "call_1_0")) == 2


def test_an_aborted_turn_is_told_as_cancelled(tell: Tell) -> None:
    last = tell("codex", CODEX_SUBAGENT)[-1]
    assert (last.event, last.fields) == ("turn_end", {"stop_reason": "cancelled"})


def test_a_document_of_an_older_gemini_is_read_too(tell: Tell) -> None:
    lines = [json.loads(line) for line in GEMINI.strip().splitlines()]
    messages = [line for line in lines if "id" in line and line["id"] != "3751"] + [lines[5]]
    told = tell("gemini", json.dumps({**lines[0], "messages": messages}), "chats/session-2026-a34c.json")
    assert of_call(told, "run_shell_command__call_1_0")[0].session_id == "a34c"


def test_opencodes_database_must_be_one(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.write_text("no database, and long enough to be looked at" * 100)
    with pytest.raises(FairleadError, match="cannot be read as a database of OpenCode's"):
        list(transcripts_of("opencode").read(TranscriptSource(path)))


# --- where they are -----------------------------------------------------------------------------


def test_transcripts_are_found_in_a_home(tmp_path: Path) -> None:
    path = tmp_path / ".codex/sessions/2026/11/16/rollout-2026-01a1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(CODEX.lstrip())
    (path.parent / "other.jsonl").write_text("{}")
    codex = transcripts_of("codex")
    assert codex.files(tmp_path) == [path]
    assert [file for place in codex.places(tmp_path, {}) for file in codex.files(place)] == [path]


def test_a_variable_of_the_cli_names_another_place(tmp_path: Path) -> None:
    assert transcripts_of("claude").places(tmp_path, {"CLAUDE_CONFIG_DIR": "/x"}) == [Path("/x/projects")]


def test_an_unknown_cli_comes_with_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="did you mean 'codex'"):
        transcripts_of("codx")


# --- garbage ------------------------------------------------------------------------------------


def read(path: Path, host: str = "claude_code") -> tuple[TranscriptSource, list[TranscriptEntry]]:
    source = TranscriptSource(path)
    return source, list(transcripts_of(host).read(source))


def test_garbage_is_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "d56f.jsonl"
    path.write_bytes(CLAUDE.strip().encode() + b'\n{"half":\n\xff\xfe\n[1]\n17\n\n')
    source, told = read(path)
    assert (source.garbage, len(told)) == (4, 12)


def test_a_last_line_that_is_being_written_is_no_garbage(tmp_path: Path) -> None:
    path = tmp_path / "d56f.jsonl"
    path.write_text(CLAUDE.strip() + '\n{"type":"user","mess')
    source, _ = read(path)
    assert source.garbage == 0


def test_a_line_that_is_too_long_is_garbage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "LONGEST_LINE", 4096)
    path = tmp_path / "d56f.jsonl"
    path.write_text(json.dumps({"type": "user", "x": "y" * 100_000}) + CLAUDE)
    source, told = read(path)
    assert (source.garbage, len(told), source.read) == (1, 12, path.stat().st_size)


def test_half_a_character_does_not_hide_a_call(tmp_path: Path) -> None:
    path = tmp_path / "d56f.jsonl"
    path.write_text(CLAUDE.replace("echo a", r"echo \ud83d").lstrip())
    source, told = read(path)
    assert source.garbage == 0
    assert of_call(told, "toolu_1")[0].fields["args"] == {"command": "echo \\ud83d"}


@pytest.mark.parametrize(
    "value", [1e20, -1e18, float("inf"), float("nan"), 10**400, "9999-12-31T23:59:59-23:00", "0001-01-01", True, [1]]
)
def test_what_is_no_time_is_not_taken_for_one(value: Any) -> None:
    assert timestamp_of(value) is None


def test_a_file_that_is_gone_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FairleadError, match=r"gone\.jsonl cannot be read: No such file"):
        read(tmp_path / "gone.jsonl")


WORDS = sorted({
    "type", "message", "content", "payload", "role", "id", "name", "input", "arguments", "call_id", "toolCalls", "data",
    "toolCallId", "toolName", "parts", "functionCall", "functionResponse", "response", "timestamp", "sessionId", "item",
    "tool_use_id", "output", "is_error", "args", "result", "status", "isSidechain", "agentId", "$set", "messages", "text",
    "origin", "mode", "ts", "error", "success", "changes", "command", "directories", "kind", "toolCallResult",
})  # fmt: skip
VALUES = sorted({
    "user", "assistant", "system", "tool_use", "tool_result", "text", "response_item", "event_msg", "session_meta",
    "function_call", "custom_tool_call", "function_call_output", "item_completed", "CommandExecution", "FileChange",
    "gemini", "session.start", "tool.execution_start", "tool.execution_complete", "subagent.started", "message",
    "session_start", "agent_turn_outcome", "subagent", "2026-11-16T05:04:29.360Z", "completed", "McpToolCall",
})  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(VALUES) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=3), inner, max_size=6),
    max_leaves=25,
)  # fmt: skip


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "opencode"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(JSON | st.binary(max_size=20), max_size=6))
def test_whatever_is_in_a_file_it_is_read(host: str, lines: list[Any], tmp_path: Path) -> None:
    path = tmp_path / LINES[host][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines))
    _, told = read(path, host)
    assert all(isinstance(one.session_id, str) and isinstance(one.fields, dict) for one in told)


# --- matching -----------------------------------------------------------------------------------

CALLS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["ls", "rm", "cat"])), max_size=8)


@given(made=CALLS, called=CALLS)
def test_as_many_calls_are_matched_as_have_a_decision_of_their_own(
    made: list[tuple[str, str]], called: list[tuple[str, str]]
) -> None:
    decisions = (
        CallDecision(float(at), tool, None, {"command": what}, "proceed") for at, (tool, what) in enumerate(made)
    )
    session = SessionDecisions(decisions, 0.0)
    found = [session.take_by_args(tool, digest_of({"command": what}), 0.0) for tool, what in called]
    assert sum(one is not None for one in found) == (Counter(made) & Counter(called)).total()
    assert len(session.left) == len(made) - sum(one is not None for one in found)


def test_of_two_decisions_on_the_same_call_the_nearer_is_taken() -> None:
    session = SessionDecisions([CallDecision(at, "a", None, {}, "proceed") for at in (1.0, 50.0)], 0.0)
    found = session.take_by_args("a", digest_of({}), 49.0)
    assert found is not None
    assert found.at == 50.0


def test_a_decision_that_is_far_off_in_time_is_about_something_else() -> None:
    session = SessionDecisions([CallDecision(1000.0, "a", None, {"x": 1}, "proceed")], 0.0)
    assert session.take_by_time("a", 10.0) is None
    assert session.take_by_time("a", 990.0) is not None
