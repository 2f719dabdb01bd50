import { describe, expect, it } from 'vitest'
import { layoutProblems } from './check-layout.mjs'

const file = (path, lines = 1) => ({ path, text: 'line\n'.repeat(lines) })
const filesIn = (folder, count, end = '.ts') =>
  Array.from({ length: count }, (_, index) => file(`${folder}/file-${index}${end}`))

describe('the layout check', () => {
  it('the layout check rejects a folder with more than 16 source files', () => {
    expect(layoutProblems(filesIn('core', 17))).toEqual(['core/ has 17 files; the limit is 16'])
    expect(layoutProblems(filesIn('core/time', 17))).toHaveLength(1)
  })

  it('the layout check rejects more than 10 source files directly in guard/', () => {
    expect(layoutProblems(filesIn('guard', 11))).toEqual(['guard/ has 11 files; the limit is 10'])
    expect(layoutProblems([...filesIn('guard', 10), ...filesIn('guard/stages', 16)])).toEqual([])
  })

  it('the layout check counts neither tests nor Lua scripts nor files of sub-folders', () => {
    const sources = [
      ...filesIn('core', 16),
      ...filesIn('core', 9, '.test.ts'),
      ...filesIn('core/time', 16),
      ...filesIn('store/redis/lua', 40, '.lua'),
    ]
    expect(layoutProblems(sources)).toEqual([])
  })

  it('the layout check rejects a source file with more than 400 lines', () => {
    expect(layoutProblems([file('core/clock.ts', 401)])).toEqual([
      'core/clock.ts has 401 lines; the limit is 400',
    ])
    const accepted = [
      file('core/clock.ts', 400),
      file('core/clock.test.ts', 900),
      file('store/redis/scripts.gen.ts', 9_000),
    ]
    expect(layoutProblems(accepted)).toEqual([])
  })

  it.each([
    'guard/machinery.ts',
    'shared/rate-limiter/lane-line.ts',
    'guard/queue/gatekeeper.test.ts',
  ])('the layout check rejects the file name %s', (path) => {
    expect(layoutProblems([file(path)])).toEqual([
      `${path} has a name that was given up; choose one from the glossary`,
    ])
  })
})
