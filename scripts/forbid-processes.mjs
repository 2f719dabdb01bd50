// Setup file of the tests that only open sockets. Their files share a thread and its loaded modules, so nothing may
// outlive a file that the thread cannot end, such as a child process.

import childProcess, { ChildProcess } from 'node:child_process'
import { syncBuiltinESMExports } from 'node:module'

function refuse() {
  throw new Error(
    'A test of the group "sockets" tried to start a child process. Its file has to begin with "// test-group: io".',
  )
}

ChildProcess.prototype.spawn = refuse
for (const name of ['spawnSync', 'execSync', 'execFileSync']) childProcess[name] = refuse
syncBuiltinESMExports()
