/** npm run bench: runs the benches of a suite one after the other and reports each. */
import { constants } from 'node:os'
import { BenchError } from './bench-error.js'
import { helpText, listText, type RunCommand, readCommand, UsageError } from './command-line.js'
import { type Bench, type Measured, measure, type Suite } from './measure.js'
import { createJsonReport, createTableReport, showProgress } from './report.js'
import { runApart } from './run-apart.js'
import { breaker } from './suites/breaker.js'
import { dashboard } from './suites/dashboard.js'
import { gateway } from './suites/gateway.js'
import { guard } from './suites/guard.js'
import { local } from './suites/local.js'
import { middleware } from './suites/middleware.js'
import { overload } from './suites/overload.js'
import { queue } from './suites/queue.js'
import { shared } from './suites/shared.js'
import { simulator } from './suites/simulator.js'
import { streams } from './suites/streams.js'

/** A new suite is a file in suites/ and a word here. */
const SUITES: readonly Suite[] = [
  local,
  shared,
  breaker,
  guard,
  overload,
  streams,
  queue,
  gateway,
  dashboard,
  middleware,
  simulator,
]

const ECHO_MS = 500

class Interrupted extends Error {
  readonly code = 'INTERRUPTED'
  readonly exitCode: number
  readonly atMs = performance.now()

  constructor(signal: 'SIGINT' | 'SIGTERM' | 'SIGPIPE') {
    super(`stopped by ${signal}`)
    this.exitCode = 128 + constants.signals[signal]
  }
}

try {
  await main()
} catch (error) {
  if (error instanceof UsageError) {
    process.stderr.write(`${error.message}\nnpm run bench -- --help explains.\n`)
    process.exitCode = 1
  } else if (error instanceof BenchError) {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  } else if (error instanceof Interrupted) {
    process.exitCode = error.exitCode
  } else {
    throw error
  }
}

async function main(): Promise<void> {
  const command = readCommand(process.argv.slice(2), SUITES)
  if (command.kind === 'help') {
    process.stdout.write(helpText(SUITES))
  } else if (command.kind === 'list') {
    process.stdout.write(`${listText(SUITES)}\nnpm run bench -- SUITE runs one.\n`)
  } else {
    await run(command)
  }
}

async function run({ suite, benches, json }: RunCommand): Promise<void> {
  const report = json ? createJsonReport() : createTableReport(benches)
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => interrupt(stop, new Interrupted(signal)))
  }
  // The reader of the results has ended, as in `| head -1`.
  process.stdout.on('error', () => stop.abort(new Interrupted('SIGPIPE')))
  for (const bench of benches) {
    const measured =
      benches.length === 1
        ? await runHere(bench, stop.signal)
        : await runApart(suite, bench.name, stop.signal)
    report(bench, measured)
  }
}

/**
 * A signal may come twice: from the terminal, and from npm or another parent process. One that comes
 * later is a second Ctrl-C and ends the process through `process.exit`, so that `exit` listeners run.
 */
function interrupt(stop: AbortController, interrupted: Interrupted): void {
  if (!stop.signal.aborted) return stop.abort(interrupted)
  const first = stop.signal.reason as Interrupted
  if (interrupted.atMs - first.atMs > ECHO_MS) process.exit(interrupted.exitCode)
}

function runHere(bench: Bench, signal: AbortSignal): Promise<Measured> {
  const hideProgress = showProgress(`measuring ${bench.name} …`)
  return measure(bench, signal).finally(hideProgress)
}
