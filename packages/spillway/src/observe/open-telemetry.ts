/**
 * Exports metrics to OpenTelemetry as observable instruments, read on collection. There is no
 * observable histogram, so durations are exported as sum and count, whose quotient is the mean.
 */
import { TIMED } from './durations-of.js'
import { bounded, INSTRUMENTS } from './instruments.js'
import { createSource, type MetricsOptions, type View } from './source.js'

/** The part of `Meter` of `@opentelemetry/api` that is used. */
export interface OpenTelemetryMeter {
  /** Creates a counter. */
  createObservableCounter(name: string, options: { description: string; unit: string }): unknown
  /** Creates a gauge. */
  createObservableGauge(name: string, options: { description: string; unit: string }): unknown
  /** Registers a callback that reports values. */
  addBatchObservableCallback(callback: never, observables: never): void
  /** Removes a callback. */
  removeBatchObservableCallback(callback: never, observables: never): void
}

/** Options of the OpenTelemetry metrics. */
export interface OpenTelemetryOptions extends MetricsOptions {
  /** The meter that the application got from OpenTelemetry. */
  meter: OpenTelemetryMeter
}

interface Observer {
  observe(instrument: unknown, value: number, attributes: Readonly<Record<string, string>>): void
}

/** Reports the current values of one instrument. */
interface Observed {
  readonly instrument: unknown
  report(view: View, observer: Observer): void
}

/**
 * Exports the metrics of a `Spillway` through a meter of OpenTelemetry. Returns a function that stops the
 * export.
 *
 * @example
 * const stop = exposeToOpenTelemetry({ spillway, meter: metrics.getMeter('my-service') })
 */
export function exposeToOpenTelemetry({ meter, ...options }: OpenTelemetryOptions): () => void {
  const view = createSource(options)
  const all = [...plainOnes(meter), ...durations(meter)]
  const instruments = all.map(({ instrument }) => instrument) as never
  const callback = async (observer: Observer) => {
    const now = await view()
    for (const each of all) each.report(now, observer)
  }
  meter.addBatchObservableCallback(callback as never, instruments)
  return () => meter.removeBatchObservableCallback(callback as never, instruments)
}

function plainOnes(meter: OpenTelemetryMeter): Observed[] {
  return INSTRUMENTS.map(({ dotted, unit, help, kind, read }) => {
    const described = { description: help, unit }
    const instrument =
      kind === 'counter'
        ? meter.createObservableCounter(dotted, described)
        : meter.createObservableGauge(dotted, described)
    return {
      instrument,
      report(view, observer) {
        for (const [labels, value] of bounded(read(view), kind)) {
          observer.observe(instrument, value, labels)
        }
      },
    }
  })
}

function durations(meter: OpenTelemetryMeter): Observed[] {
  return TIMED.flatMap(({ dotted, help, read }): Observed[] => {
    const sum = meter.createObservableCounter(`${dotted}.sum`, { description: help, unit: 's' })
    const count = meter.createObservableCounter(`${dotted}.count`, {
      description: `How many of them: ${help}`,
      unit: '1',
    })
    return [
      {
        instrument: sum,
        report(view, observer) {
          for (const each of read(view)) observer.observe(sum, each.durations.sum, each.labels)
        },
      },
      {
        instrument: count,
        report(view, observer) {
          for (const { durations, labels } of read(view)) {
            const total = durations.counts.reduce((all, each) => all + each, 0)
            observer.observe(count, total, labels)
          }
        },
      },
    ]
  })
}
