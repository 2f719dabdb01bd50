/** npm run bench: runs the benches of a suite one after the other and reports each. */
import { constants } from 'node:os'
import { compare, type RunFigure, runFigure } from './baseline/baseline.js'
import { currentProgram, readBaseline, writeBaseline } from './baseline/baseline-file.js'
import { BenchError } from './bench-error.js'
import { helpText, listText, type RunCommand, readCommand, UsageError } from './command-line.js'
import { type Bench, type Measured, measure, type Suite } from './measure.js'
import { createCompareReport, createJsonReport, createTableReport, showProgress } from './report.js'
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

/** To add a suite, create a file in suites/ and add a row here. */
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
    process.stderr.write(`${error.message}\nSee npm run bench -- --help\n`)
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
    process.stdout.write(`${listText(SUITES)}\nRun one with npm run bench -- SUITE\n`)
  } else if (command.kind === 'compare') {
    await compareWithBaseline(command.suites)
  } else if (command.kind === 'record') {
    await recordBaseline(command.suites, command.runs)
  } else {
    await run(command)
  }
}

async function run({ suites, json }: RunCommand): Promise<void> {
  const benches = suites.flatMap((suite) => suite.benches)
  const report = json ? createJsonReport() : createTableReport(benches)
  const signal = stopSignal()
  for (const suite of suites) {
    for (const bench of suite.benches) {
      const measured =
        benches.length === 1
          ? await runHere(bench, signal)
          : await runApart(suite.name, bench.name, signal)
      report(bench, measured)
    }
  }
}

async function compareWithBaseline(suites: readonly Suite[]): Promise<void> {
  const baseline = readBaseline()
  const report = createCompareReport(baseline, suites)
  const signal = stopSignal()
  for (const suite of suites) {
    for (const bench of suite.benches) {
      const key = `${suite.name}/${bench.name}`
      const spread = baseline[key]
      const measureOnce = async () =>
        runFigure(bench, await runApart(suite.name, bench.name, signal))
      const { figure, verdict } = await compare(spread, measureOnce)
      report(key, figure, spread, verdict)
      if (verdict === 'worse') process.exitCode = 1
    }
  }
}

/**
 * Runs all benches once, then all of them again, so that a disturbance of some minutes does not affect every run of a
 * bench. Writes after each run, so that an interrupted recording keeps new benches.
 */
async function recordBaseline(suites: readonly Suite[], runs: number): Promise<void> {
  const signal = stopSignal()
  const program = currentProgram()
  const figures: Record<string, RunFigure[]> = {}
  for (let number = 1; number <= runs; number++) {
    for (const suite of suites) {
      for (const bench of suite.benches) {
        const key = `${suite.name}/${bench.name}`
        process.stderr.write(`run ${number} of ${runs}: ${key}\n`)
        const measured = await runApart(suite.name, bench.name, signal)
        figures[key] = [...(figures[key] ?? []), runFigure(bench, measured)]
      }
    }
    writeBaseline(figures, program, number === runs)
  }
}

/** Aborted by Ctrl-C and SIGTERM. */
function stopSignal(): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => interrupt(stop, new Interrupted(signal)))
  }
  // The program that reads the results has exited, as in `| head -1`.
  process.stdout.on('error', () => stop.abort(new Interrupted('SIGPIPE')))
  return stop.signal
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
