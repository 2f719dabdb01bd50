/** A Redis server for one measurement: on a free port, without persistence. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'

const PROGRAM = process.env.SPILLWAY_REDIS_SERVER ?? 'redis-server'

export async function startRedis() {
  const port = await freePort()
  const settings = { port, bind: '127.0.0.1', dir: tmpdir(), save: '', appendonly: 'no' }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, `${value}`])
  const server = spawn(PROGRAM, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const closed = once(server, 'close')
  const stopWithUs = () => server.kill('SIGKILL')
  process.once('exit', stopWithUs)
  await untilReady(server.stdout.setEncoding('utf8'))
  return {
    host: '127.0.0.1',
    port,
    url: `redis://127.0.0.1:${port}`,
    /** The process keeps its connections and answers nothing until `resume`. */
    hang: () => server.kill('SIGSTOP'),
    resume: () => server.kill('SIGCONT'),
    async stop() {
      process.off('exit', stopWithUs)
      server.kill('SIGKILL')
      await closed
    },
  }
}

async function untilReady(stdout) {
  let output = ''
  for await (const text of stdout.iterator({ destroyOnReturn: false })) {
    output += text
    if (output.includes('Ready to accept connections')) return stdout.resume()
  }
  throw new Error(`redis-server ended before it was ready. Its output:\n${output}`)
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}
