/** How many requests one failing call makes, counted in the gateway's log by the user of the request. */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { FAILURES } from './failures.mjs'
import { keyOf, retryUser, WINDOW_MS } from './gateway-config.mjs'

/** LangChain waits up to a minute between retries. Requests that have arrived by then are counted. */
const MOST_MS = 100_000

/** Failures are measured at once, each with a user of its own, because some SDKs wait for minutes. */
export async function countRetries(client, index, gateway) {
  const counts = Object.keys(FAILURES).map(async (name) => {
    const user = retryUser(index, name)
    const byDefault = await countRequests(client, { ...gateway, user, name, retries: true })
    const off = await countRequests(client, { ...gateway, user, name, retries: false })
    return [name, { default: byDefault, off }]
  })
  return Object.fromEntries(await Promise.all(counts))
}

async function countRequests(client, { url, logFile, user, name, retries }) {
  const { model, knobs, spent = 0 } = FAILURES[name]
  const headers = { 'x-mock': JSON.stringify({ tokens: 3, ...knobs }) }
  const create = (mayRetry) => client.create({ url, key: keyOf(user), headers, retries: mayRetry })
  const before = await requestsOf(logFile, user)
  // A limit is used up by other calls of the same user.
  const others = Array.from({ length: spent }, () => create(false).plain(model))
  await Promise.allSettled(others)
  const call = create(retries)
    .plain(model)
    .then(
      () => 'answered',
      () => 'failed',
    )
  const ended = await Promise.race([call, sleep(MOST_MS, 'stopped')])
  const made = (await requestsOf(logFile, user)) - before - spent
  // Until the limit allows as many calls again.
  if (spent > 0) await sleep(WINDOW_MS)
  return { made, ended }
}

async function requestsOf(logFile, user) {
  // The log is written after the answer.
  await sleep(300)
  return readFileSync(logFile, 'utf8')
    .split('\n')
    .filter((line) => line.includes(`"user":"${user}"`)).length
}
