import { type CallEnd, judge, type OutcomeOptions } from 'spillway'

function show(title: string, end: CallEnd, options?: OutcomeOptions) {
  const { outcome, retryable, retryAfterMs } = judge(end, options)
  const wait = retryAfterMs === undefined ? '' : `, after ${retryAfterMs} ms`
  console.log(`${title.padEnd(28)} ${outcome}${retryable ? ', retryable' : ''}${wait}`)
}

const status = (code: number) => Object.assign(new Error(`status ${code}`), { status: code })
const response = new Response('', { status: 429, headers: { 'retry-after': '3' } })
const caller = AbortSignal.abort()

show('a value', { value: 42 })
show('a value that took 900 ms', { value: 42, durationMs: 900 }, { slowMs: 500 })
show('a Response with 429', { value: response })
show('an error with status 503', { error: status(503) })
show('an error with status 404', { error: status(404) })
show('a broken connection', { error: new Error('ECONNRESET') })
show('a typo in our own code', { error: new TypeError('x is not a function') })
show('the caller hung up', { error: caller.reason, signal: caller })

// Errors with their own `retryable` or `retryAfterMs`.
show('an error that says no', { error: Object.assign(status(503), { retryable: false }) })
show('an error that says when', { error: Object.assign(status(503), { retryAfterMs: 500 }) })

// A custom rule: this vendor answers "busy" in the body of a 200.
const classify: OutcomeOptions['classify'] = (end) =>
  'value' in end && end.value === 'busy' ? 'throttled' : undefined
show('a 200 that says "busy"', { value: 'busy' }, { classify })
show('any other value', { value: 'fine' }, { classify })
