// node load.mjs URL…: sends chat requests to gateways in turn. RATE: requests per second, default 10. SECONDS: how long,
// default 600. Every tenth request is streamed, and every twentieth requests an error.

const urls = process.argv.slice(2)
const rate = Number(process.env.RATE ?? 10)
const seconds = Number(process.env.SECONDS ?? 600)
if (urls.length === 0 || !(rate > 0 && rate <= 1_000) || !(seconds > 0 && seconds <= 86_400)) {
  process.stderr.write('usage: RATE=10 SECONDS=600 node load.mjs URL…\n')
  process.exit(1)
}

const counts = new Map()
const total = Math.ceil(rate * seconds)
let sent = 0
const timer = setInterval(() => {
  if (sent < total) send(sent++)
  if (sent >= total) clearInterval(timer)
}, 1_000 / rate)

for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(0))
process.on('exit', () => {
  process.stdout.write(`${JSON.stringify({ sent, statuses: Object.fromEntries(counts) })}\n`)
})

async function send(number) {
  const status = await chat(number).catch(() => 'no answer')
  counts.set(status, (counts.get(status) ?? 0) + 1)
}

async function chat(number) {
  const isFailing = number % 20 === 19
  const response = await fetch(`${urls[number % urls.length]}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(isFailing && { 'x-mock': '{"status":500}' }),
    },
    body: JSON.stringify({
      model: 'gpt-4o',
      stream: number % 10 === 0,
      messages: [{ role: 'user', content: 'Hello' }],
    }),
    signal: AbortSignal.timeout(30_000),
  })
  await response.arrayBuffer()
  return response.status
}
