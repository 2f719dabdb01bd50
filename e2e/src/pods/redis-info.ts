/** Reads a section of Redis' INFO. */
import { once } from 'node:events'
import { connect } from 'node:net'

export async function redisInfo(port: number, section: string): Promise<Map<string, string>> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.setEncoding('utf8')
  socket.write(`INFO ${section}\r\nQUIT\r\n`)
  let text = ''
  socket.on('data', (data) => {
    text += data
  })
  await once(socket, 'close')
  const lines = text.split('\r\n').filter((line) => line.includes(':'))
  return new Map(lines.map((line) => line.split(/:(.*)/, 2) as [string, string]))
}

/** Commands that clients have sent, without those that scripts called. */
export async function commandsSent(port: number): Promise<number> {
  const stats = await redisInfo(port, 'commandstats')
  const scripts = ['cmdstat_evalsha', 'cmdstat_eval']
  return scripts.reduce((sum, name) => sum + callsIn(stats.get(name)), 0)
}

function callsIn(line = ''): number {
  return Number(/calls=(\d+)/.exec(line)?.[1] ?? 0)
}
