// Setup file of the quick tests. They use no sockets and no child processes, which keeps them fast
// and independent of the machine's load. A test that breaks this rule fails with a clear message.

import childProcess, { ChildProcess } from 'node:child_process'
import dgram from 'node:dgram'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'

const forbid = (object, name, what) => {
  object[name] = () => {
    throw new Error(
      `A quick test tried to ${what}. Add the line "// test-group: io" at the top of the test file.`,
    )
  }
}

forbid(net.Server.prototype, 'listen', 'open a server socket')
forbid(net.Socket.prototype, 'connect', 'open a connection')
forbid(dgram.Socket.prototype, 'bind', 'open a UDP socket')
forbid(ChildProcess.prototype, 'spawn', 'start a child process')
for (const name of ['spawnSync', 'execSync', 'execFileSync']) {
  forbid(childProcess, name, 'start a child process')
}
syncBuiltinESMExports()
