import { createSpillway, enqueue, type Guard, staticValue } from 'spillway'
import type { EnqueuedJob } from 'spillway/degrade'

const spillway = createSpillway() // with a Redis store, any pod can run the jobs

/** Prints an invoice, unless the printer is down. */
let isDown = true
const print = async (invoice: number): Promise<string> => {
  if (isDown) throw new Error('the printer is off')
  return `invoice ${invoice} is printed`
}

const printer: Guard = spillway.guard('printer', {
  timeout: { callMs: '30s' },
  breaker: { consecutiveFailures: 2, openMs: '1s', successes: 1 },
  fallback: [
    // A function, because the queue is created after its guard.
    enqueue<number>({ queue: () => invoices }),
    staticValue('please try again later'), // a call outside the queue
  ],
})
const invoices = spillway.jobQueue<number, string>('invoices', { guard: printer, keep: 0 })

// The job's input, tenant and deduplication key are options of the call.
const tickets: EnqueuedJob[] = []
for (const invoice of [1, 2, 3, 3]) {
  const { value, reason, message } = await printer.runDegradable<string | EnqueuedJob>(
    () => print(invoice),
    { job: invoice, user: 'ann', idempotencyKey: `invoice-${invoice}` },
  )
  if (typeof value === 'string') continue
  tickets.push(value)
  console.log(`${invoice}: ${reason}; ${value.fresh ? 'a new job' : 'the same job'}; ${message}`)
}
console.log(await printer.run<unknown>(() => print(4)))

// While the circuit is open no job is handed out; once the printer is back, all are done.
const worker = invoices.work(({ data }) => print(data))
isDown = false
while ((await invoices.counts()).done < 3) await new Promise((wake) => setTimeout(wake, 20))
for (const { id } of tickets.slice(0, 3)) console.log((await invoices.job(id))?.result)
console.log(`retried by workers: ${worker.snapshot().retried}`)

await spillway.close()
