// Setup file of the quick tests. They use no sockets and no child processes, which keeps them fast
// and independent of the machine's load. A test that breaks this rule fails with a clear message.

import childProcess, { ChildProcess } from 'node:child_process'
import dgram from 'node:dgram'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'

const IO = '"// test-group: io"'
const SOCKETS = `"// test-group: sockets" (or ${IO}, if it also starts processes)`

const forbid = (object, name, what, marker) => {
  object[name] = () => {
    throw new Error(
      `A quick test tried to ${what}. Add the line ${marker} at the top of the test file.`,
    )
  }
}

forbid(net.Server.prototype, 'listen', 'open a server socket', SOCKETS)
forbid(net.Socket.prototype, 'connect', 'open a connection', SOCKETS)
forbid(dgram.Socket.prototype, 'bind', 'open a UDP socket', SOCKETS)
forbid(ChildProcess.prototype, 'spawn', 'start a child process', IO)
for (const name of ['spawnSync', 'execSync', 'execFileSync']) {
  forbid(childProcess, name, 'start a child process', IO)
}
syncBuiltinESMExports()
