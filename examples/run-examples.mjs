/**
 * Runs examples one after the other in one process, which loads the library only once. The next one starts when the
 * event loop is empty, which would end the process of a single example. Arguments: names of built examples. Writes a
 * line of JSON for each of them to file descriptor 3.
 */
import { channel } from 'node:diagnostics_channel'
import { writeSync } from 'node:fs'

const names = process.argv.slice(2)
const streams = { stdout: '', stderr: '' }
for (const name of ['stdout', 'stderr']) {
  process[name].write = (chunk, encoding, done) => {
    streams[name] += chunk
    const written = typeof encoding === 'function' ? encoding : done
    if (written) process.nextTick(written)
    return true
  }
}

let running
function report(problem) {
  const { name } = running
  running = undefined
  writeSync(3, `${JSON.stringify({ name, problem, ...streams })}\n`)
  streams.stdout = ''
  streams.stderr = ''
  for (const listener of listeners) events.unsubscribe(listener)
  listeners.clear()
}

const events = channel('spillway')
/** Listeners of the running example, removed before the next one. */
const listeners = new Set()

// Readers copy examples, so every guard in them has a timeout.
events.subscribe(({ type, name }) => {
  if (type === 'guard.no-timeout' && running !== undefined) {
    running.problem ??= `the guard '${name}' has no timeout`
  }
})
events.subscribe = (listener) => {
  listeners.add(listener)
  Object.getPrototypeOf(events).subscribe.call(events, listener)
}

process.on('uncaughtException', (error) => {
  if (running === undefined) throw error
  running.problem ??= error.stack ?? String(error)
})

process.on('beforeExit', () => {
  if (running !== undefined) {
    const code = process.exitCode ?? 0
    process.exitCode = 0
    const unsettled = running.settled ? undefined : 'its top-level await never settled'
    report(running.problem ?? unsettled ?? (code === 0 ? undefined : `exit code ${code}`))
  }
  const name = names.shift()
  if (name === undefined) return
  const example = { name, settled: false, problem: undefined }
  running = example
  import(new URL(`dist/${name}.js`, import.meta.url)).then(
    () => {
      example.settled = true
    },
    (error) => {
      // A failed example may leave a server open, which would keep this process alive.
      report(example.problem ?? error.stack ?? String(error))
      process.exit(1)
    },
  )
})
