import { describe, expect, it } from 'vitest'
import type { Bench, Suite } from '../measure.js'
import { recordingLines } from '../report.js'
import {
  type Baseline,
  compare,
  type RunFigure,
  runFigure,
  spreadOf,
  verdictOf,
} from './baseline.js'

const ratios = (...figures: number[]): RunFigure[] =>
  figures.map((figure) => ({ unit: 'ratio', better: 'higher', figure }))
const bench = (target: Bench['target']) => ({ name: 'any', what: 'any', target }) as Bench

describe('baseline of the benches', () => {
  it('the spread of five runs is their lowest, median and highest figure', () => {
    expect(spreadOf(ratios(2, 1.8, 2.4, 2.1, 1.9))).toEqual({
      unit: 'ratio',
      better: 'higher',
      min: 1.8,
      median: 2,
      max: 2.4,
    })
  })

  it('a ratio on the edge of its spread is within it', () => {
    const spread = spreadOf(ratios(1.8, 2, 2.4))
    for (const ratio of [1.8, 2.1, 2.4]) {
      expect(verdictOf(spread, ratios(ratio)[0]!)).toBe('within')
    }
  })

  it('a ratio below its spread is worse and one above it is better', () => {
    const spread = spreadOf(ratios(1.8, 2, 2.4))
    expect(verdictOf(spread, ratios(1.79)[0]!)).toBe('worse')
    expect(verdictOf(spread, ratios(2.41)[0]!)).toBe('better')
  })

  it('a figure with an upper target is worse above its spread', () => {
    const bytes = (value: number) => runFigure(bench({ atMost: 150 }), { value, unit: 'bytes' })
    const spread = spreadOf([bytes(120), bytes(130)])
    expect(verdictOf(spread, bytes(131))).toBe('worse')
    expect(verdictOf(spread, bytes(119))).toBe('better')
  })

  it('a figure with a lower target is worse below its spread', () => {
    const events = (value: number) => runFigure(bench({ atLeast: 10 }), { value, unit: 'events/s' })
    expect(verdictOf(spreadOf([events(20)]), events(19))).toBe('worse')
  })

  it('a figure without a target that left its spread is neither better nor worse', () => {
    const plain = (value: number) => runFigure(bench(undefined), { value, unit: 'µs' })
    expect(verdictOf(spreadOf([plain(5)]), plain(6))).toBe('outside')
  })

  it('a bench without a figure in the baseline is new', () => {
    expect(verdictOf(undefined, ratios(1)[0]!)).toBe('new')
  })

  it('the figure of a comparison is its ratio, whatever its unit', () => {
    const measured = { ours: 10, peer: 30, peerName: 'peer 1.0.0', unit: 'ns/op', ratio: 3 }
    expect(runFigure(bench(2), measured)).toEqual({ unit: 'ratio', better: 'higher', figure: 3 })
  })
})

describe('comparison with the baseline', () => {
  const spread = spreadOf(ratios(1.8, 2, 2.4))
  /** Returns the verdict and how often it took a measurement. */
  async function compareAll(known: typeof spread | undefined, ...measured: number[]) {
    const left = ratios(...measured)
    const { verdict } = await compare(known, async () => left.shift()!)
    return [verdict, measured.length - left.length]
  }

  it('a figure within its spread or without one is measured once', async () => {
    expect(await compareAll(spread, 2, 1, 1)).toEqual(['within', 1])
    expect(await compareAll(undefined, 1, 1, 1)).toEqual(['new', 1])
  })

  it('a figure has changed if it is on the same side of its spread three times', async () => {
    expect(await compareAll(spread, 1.7, 1.6, 1.7)).toEqual(['worse', 3])
    expect(await compareAll(spread, 2.5, 2.6, 2.5)).toEqual(['better', 3])
  })

  it('a figure that returns to its spread, or lies on both sides of it, has not changed', async () => {
    expect(await compareAll(spread, 1.7, 1.7, 1.9)).toEqual(['within', 3])
    expect(await compareAll(spread, 1.7, 2.5, 1.7)).toEqual(['within', 2])
    const { better: _, ...withoutTarget } = spread
    expect(await compareAll(withoutTarget, 1.7, 2.5, 1.7)).toEqual(['within', 2])
    expect(await compareAll(withoutTarget, 1.7, 1.6, 1.7)).toEqual(['outside', 3])
  })
})

describe('header of a comparison', () => {
  const program = { date: '2026-01-31', commit: '12345678', node: '24.0.0' }
  const recorded = (runs: number): Baseline[string] => ({
    ...spreadOf(ratios(1)),
    recording: { ...program, runs },
  })
  const suite = (name: string, ...benches: string[]): Suite => ({
    name,
    what: 'any',
    benches: benches.map((each) => ({ ...bench(undefined), name: each })),
  })

  it('a recording of whole suites is one line with their names', () => {
    const baseline = { 'one/a': recorded(5), 'one/b': recorded(5), 'two/a': recorded(5) }
    expect(recordingLines(baseline, [suite('one', 'a', 'b', 'new'), suite('two', 'a')])).toEqual([
      'baseline of 2026-01-31, commit 12345678, Node 24.0.0, 5 runs: one, two',
    ])
  })

  it('a bench that was recorded separately has a line of its own', () => {
    const baseline = { 'one/a': recorded(5), 'one/b': recorded(1) }
    expect(recordingLines(baseline, [suite('one', 'a', 'b')])).toEqual([
      'baseline of 2026-01-31, commit 12345678, Node 24.0.0, 5 runs: one/a',
      'baseline of 2026-01-31, commit 12345678, Node 24.0.0, 1 run: one/b',
    ])
  })
})
