# PowerShell of ordinary work, which passes: one command a line.
Get-ChildItem -Recurse -Filter *.cs
Get-Content README.md -TotalCount 50
Get-Content .\logs\app.log -Tail 100 -Wait
Select-String -Path src\*.ts -Pattern 'TODO'
Get-ChildItem -Path . -Include *.log -Recurse | Remove-Item
Remove-Item -Recurse -Force .\node_modules
Remove-Item -Recurse -Force bin, obj
Remove-Item dist -Recurse -Force -ErrorAction SilentlyContinue
Get-Process | Where-Object { $_.CPU -gt 100 }
Stop-Process -Name node -Force
Stop-Process -Id 1234
Get-Service | Where-Object Status -eq Running
Restart-Service W3SVC
dotnet build -c Release; dotnet test
$env:NODE_ENV = 'test'; npm test
Invoke-WebRequest -Uri https://example.com/x.zip -OutFile x.zip
Invoke-RestMethod -Uri http://localhost:5000/api/items | ConvertTo-Json
Invoke-RestMethod -Method Delete -Uri http://localhost:5000/api/items/1
Expand-Archive x.zip -DestinationPath out
New-Item -ItemType Directory -Path src\new -Force
Copy-Item -Recurse src out
Move-Item a.txt b.txt
Rename-Item a.txt b.txt
Set-Content -Path a.txt -Value 'x'
Add-Content log.txt 'done'
Test-Path .\config.json
Get-Location; Set-Location src
$files = Get-ChildItem *.txt; foreach ($f in $files) { $f.Name }
Get-ChildItem | Measure-Object -Property Length -Sum
(Get-Content a.txt) -replace 'x','y' | Set-Content a.txt
Import-Csv data.csv | Group-Object type | Select-Object Name, Count
ConvertFrom-Json (Get-Content package.json -Raw) | Select-Object version
git status; git add -A; git commit -m 'x'
python -m venv .venv; .\.venv\Scripts\Activate.ps1
Get-Command node
$PSVersionTable
Write-Host 'Remove-Item -Recurse C:\'
Get-EventLog -LogName Application -Newest 10
winget install Git.Git
choco install nodejs -y
Install-Module Pester -Scope CurrentUser
Invoke-Pester
Start-Process notepad
Get-NetTCPConnection -LocalPort 3000
Get-Content .env.example
if (Test-Path build) { Remove-Item build -Recurse }
docker compose up -d
npm ci; if ($LASTEXITCODE -ne 0) { exit 1 }
Compress-Archive -Path dist -DestinationPath dist.zip
Get-Date -Format o
ls | % { $_.FullName }
Get-ChildItem Env:
$env:PATH -split ';'
Set-ExecutionPolicy -Scope Process -ExecutionPolicy Bypass -Force
Clear-Host
msbuild app.sln /t:Clean,Build
cmd /c 'dir'
Get-Acl file.txt
Get-FileHash x.zip
