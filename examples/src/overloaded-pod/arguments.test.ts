import { expect, it } from 'vitest'
import { readArguments } from './arguments.js'

it.each([
  [['--quick'], "Unknown option '--quick'"],
  [['fast'], "Unexpected argument 'fast'"],
  [['--seed', 'ten'], '--seed: must be a whole number, got "ten"'],
  [['--seed'], "Option '--seed <value>' argument missing"],
])('the arguments %j of the example are a mistake', (args, message) => {
  expect(readArguments(args)).toEqual({ kind: 'mistake', message })
})

it.each(['--help', '-h'])('the argument %s prints the help of the example', (argument) => {
  expect(readArguments([argument])).toEqual({ kind: 'help' })
})

it('the example runs live with seed 1 by default', () => {
  expect(readArguments([])).toEqual({ kind: 'run', fast: false, seed: 1 })
  expect(readArguments(['--fast', '--seed', '8'])).toEqual({ kind: 'run', fast: true, seed: 8 })
})
