/**
 * `it` and `onTestFinished` for tests of which several run at once. Vitest's own `onTestFinished`
 * knows only the test that started last.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import {
  afterAll,
  type TestContext,
  TestRunner,
  it as vitestIt,
  onTestFinished as vitestOnFinished,
} from 'vitest'

const running = new AsyncLocalStorage<TestContext>()

type Test<T extends unknown[]> = (...values: T) => unknown

let sampleSize = 1
const seen = new WeakMap<object, number>()

/**
 * In this test file, only the first of every `size` tests of each `describe` runs, so that every kind of claim is
 * still made. For topologies on which most claims hold for the same reason as on one server.
 */
export function sampleTests(size: number): void {
  sampleSize = size
  afterAll(() => {
    sampleSize = 1
  })
}

function isInSample(): boolean {
  const suite = TestRunner.getCurrentSuite()
  const index = seen.get(suite) ?? 0
  seen.set(suite, index + 1)
  return index % sampleSize === 0
}

export function it(name: string, test: Test<[]>): void {
  if (!isInSample()) return
  vitestIt(name, (context) => running.run(context, test) as Promise<void>)
}

/** One test for each row. An array is spread into arguments, as Vitest does it. */
it.each = <const T>(rows: readonly T[]) => {
  return (name: string, test: Test<T extends readonly unknown[] ? [...T] : [T]>): void => {
    vitestIt.for(rows.filter(isInSample))(name, (row, context) => {
      const values = (Array.isArray(row) ? row : [row]) as Parameters<typeof test>
      return running.run(context, () => test(...values)) as Promise<void>
    })
  }
}

/** Also works in a test of Vitest's own `it`, if it runs alone. */
export function onTestFinished(release: () => unknown): void {
  const { onTestFinished: onFinished } = running.getStore() ?? { onTestFinished: vitestOnFinished }
  onFinished(async () => {
    await release()
  })
}
