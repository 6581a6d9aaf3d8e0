"""The tools of the demo: paths stay in the workspace, and commands end when they must."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
from pathlib import Path
from typing import Any

import pytest
from left_running import left_running

from fairlead.hosts.loop.agent import Agent
from fairlead.hosts.loop.tools import OUTPUT_LIMIT, Tool, ToolError, Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with a file in it, next to a secret and with links that lead out."""
    (tmp_path / "secret.txt").write_text("secret")
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "a.txt").write_text("hello")
    (root / "file-link").symlink_to(tmp_path / "secret.txt")
    (root / "folder-link").symlink_to(tmp_path)
    (root / "dangling-link").symlink_to(tmp_path / "new.txt")
    return root


def tool(root: Path, name: str, **about: Any) -> Tool:
    return next(tool for tool in Workspace(root, **about).tools if tool.name == name)


# --- paths ----------------------------------------------------------------------------------------

OUTSIDE = [
    "../secret.txt",
    "inner/../../secret.txt",
    "file-link",
    "folder-link/secret.txt",
    "/etc/passwd",
    "//etc/passwd",
]


@pytest.mark.parametrize("path", OUTSIDE)
async def test_reading_cannot_leave_the_workspace(path, root):
    with pytest.raises(ToolError, match="outside the workspace"):
        await tool(root, "read").run({"path": path})


@pytest.mark.parametrize("path", ["../new.txt", "folder-link/new.txt", "dangling-link", "folder-link/deep/er/new.txt"])
async def test_writing_cannot_leave_the_workspace(path, root):
    with pytest.raises(ToolError, match="outside the workspace"):
        await tool(root, "write").run({"path": path, "content": "x"})
    assert sorted(entry.name for entry in root.parent.iterdir()) == ["root", "secret.txt"]


async def test_writing_to_an_absolute_path_outside_is_refused(root):
    with pytest.raises(ToolError, match="outside the workspace"):
        await tool(root, "write").run({"path": str(root.parent / "new.txt"), "content": "x"})
    assert not (root.parent / "new.txt").exists()


@pytest.mark.parametrize("path", ["..", "/", "folder-link"])
async def test_listing_cannot_leave_the_workspace(path, root):
    with pytest.raises(ToolError, match="outside the workspace"):
        await tool(root, "list").run({"path": path})


async def test_a_folder_beside_the_workspace_with_the_same_beginning_is_outside(root):
    (root.parent / "root-2").mkdir()
    with pytest.raises(ToolError, match="outside the workspace"):
        await tool(root, "list").run({"path": "../root-2"})


@pytest.mark.parametrize("path", ["inner/a.txt", "inner/../inner/a.txt", "./inner/a.txt"])
async def test_a_path_that_stays_inside_is_read(path, root):
    assert await tool(root, "read").run({"path": path}) == "hello"


async def test_an_absolute_path_inside_is_read(root):
    assert await tool(root, "read").run({"path": str(root / "inner" / "a.txt")}) == "hello"


async def test_a_link_that_stays_inside_is_read(root):
    (root / "link").symlink_to(root / "inner" / "a.txt")
    assert await tool(root, "read").run({"path": "link"}) == "hello"


async def test_a_workspace_that_is_itself_a_link_works(root, tmp_path):
    (tmp_path / "way-in").symlink_to(root)
    assert await tool(tmp_path / "way-in", "read").run({"path": "inner/a.txt"}) == "hello"


# --- files ----------------------------------------------------------------------------------------


async def test_writing_makes_the_folders_it_needs(root):
    said = await tool(root, "write").run({"path": "x/y/z.txt", "content": "abc"})
    assert (said, (root / "x/y/z.txt").read_text()) == ("wrote 3 characters to x/y/z.txt", "abc")


async def test_listing_marks_folders(root):
    (root / "b.txt").touch()
    assert (await tool(root, "list").run({"path": "."})).splitlines()[0] == "b.txt"
    assert "inner/" in (await tool(root, "list").run({"path": "."})).splitlines()


@pytest.mark.parametrize(("name", "path"), [("read", "nothing"), ("list", "nothing"), ("read", "inner")])
async def test_what_cannot_be_read_is_named_with_the_reason(name, path, root):
    with pytest.raises(ToolError, match=rf"^{path}: "):
        await tool(root, name).run({"path": path})


async def test_a_large_file_is_cut(root):
    (root / "large").write_text("x" * (OUTPUT_LIMIT + 10))
    assert len(await tool(root, "read").run({"path": "large"})) == OUTPUT_LIMIT


@pytest.mark.parametrize(
    "args", [{}, {"path": 1}, {"path": None}, {"path": "a", "mode": "w"}, {"arguments": "not json"}]
)  # fmt: skip
async def test_wrong_arguments_are_named(args, root):
    with pytest.raises(ToolError, match="read takes path, each a text; see"):
        await tool(root, "read").run(args)


# --- the shell ------------------------------------------------------------------------------------


async def test_a_command_runs_in_the_workspace(root):
    assert await tool(root, "shell").run({"command": "pwd; ls inner"}) == f"{root}\na.txt\n"


async def test_a_command_s_errors_are_part_of_its_output(root):
    assert await tool(root, "shell").run({"command": "echo out; echo err >&2"}) == "out\nerr\n"


async def test_a_command_that_fails_tells_its_exit_code_and_its_output(root):
    with pytest.raises(ToolError, match=r"^exit 3\nwhy$"):
        await tool(root, "shell").run({"command": "echo why; exit 3"})


async def test_a_command_has_nothing_to_read_from(root):
    async with asyncio.timeout(5):
        assert await tool(root, "shell").run({"command": "cat"}) == ""


async def test_a_command_s_output_is_capped(root):
    text = await tool(root, "shell").run({"command": f"head -c {OUTPUT_LIMIT * 3} /dev/zero | tr '\\0' x"})
    assert text == "x" * OUTPUT_LIMIT + "\n[cut]"


async def test_output_that_is_no_text_is_shown_as_far_as_it_goes(root):
    assert await tool(root, "shell").run({"command": r"printf 'a\377b'"}) == "a\ufffdb"


async def test_a_time_out_kills_the_whole_process_group(root):
    mark = f"sleep 32.{secrets.randbelow(10**9):09}"
    with pytest.raises(ToolError, match=r"the command did not end within 0.1 s"):
        await tool(root, "shell", timeout=0.1).run({"command": f"({mark}; true); true"})
    assert left_running(mark) == []


async def test_a_cancelled_command_is_killed_with_its_process_group(root):
    mark = f"sleep 32.{secrets.randbelow(10**9):09}"
    os.mkfifo(root / "ready")
    work = asyncio.create_task(Workspace(root).shell(f"echo > ready; {mark}; true"))
    await asyncio.to_thread((root / "ready").read_text)  # the command has begun
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert left_running(mark) == []


async def test_a_time_out_is_an_error_result_and_the_turn_goes_on(scripted, root):
    model = scripted(("", [("shell", {"command": "sleep 32; true"})]), "Too slow.")
    async with Agent(model.model, Workspace(root, timeout=0.05).tools, policy="open") as agent:
        assert (await agent.run("Go.")).output == "Too slow."
    assert model.sent[1][-1] == "error: the command did not end within 0.05 s"


# --- what hooks are told --------------------------------------------------------------------------


async def test_tools_say_what_kind_they_are_and_how_safe(root):
    assert {tool.name: (tool.kind, tool.safety) for tool in Workspace(root).tools} == {
        "shell": ("shell", "mutating"),
        "read": ("read", "read_only"),
        "write": ("write", "mutating"),
        "list": ("read", "read_only"),
    }


async def test_hooks_see_a_tool_s_target(scene, root):
    calls = [("shell", {"command": "true"}), ("write", {"path": "b", "content": ""})]
    played = scene(("", calls))
    played.agent = Agent(played.model.model, Workspace(root).tools, played.hooks, policy="open")
    await played.play()
    shell, write = played.steps("before_tool")
    assert (shell.target.command, list(write.target.paths)) == ("true", ["b"])


async def test_a_time_out_does_not_wait_for_what_left_the_group(tmp_path: Path):
    mark = f"sleep 5.{os.getpid():07}"
    with pytest.raises(ToolError, match="did not end within"):
        async with asyncio.timeout(4):
            await Workspace(tmp_path, timeout=0.2).shell(f"setsid {mark} & sleep 3")
    subprocess.run(["pkill", "-f", mark], check=False)
