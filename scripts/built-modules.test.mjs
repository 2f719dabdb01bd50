import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { BUILT_MODULES, builtModule } from './built-modules.mjs'

const root = mkdtempSync(join(tmpdir(), 'built-'))
const folder = join(root, 'packages/library')
afterAll(() => rmSync(root, { recursive: true, force: true }))

const write = (path) => {
  mkdirSync(join(folder, path, '..'), { recursive: true })
  writeFileSync(join(folder, path), '')
}
write('src/core/clock.ts')
write('dist/core/clock.js')
write('src/core/clock.test.ts')
write('src/core/new.ts')
write('dist/core/removed.js')

const BUILT = join(folder, 'dist/core/clock.js')

describe('built modules in io tests', () => {
  it.each([
    ['a test in another folder', '../src/core/clock.js', 'test/any.test.ts'],
    ['a test beside it', './clock.js', 'src/core/clock.test.ts'],
    ['a test of another package', '../../library/src/core/clock.js', '../other/test/any.test.ts'],
  ])('a relative import of a source by %s loads the built module', (_, id, importer) => {
    expect(builtModule(id, join(folder, importer))).toBe(BUILT)
  })

  it('an import by alias, which is an absolute path, loads the built module', () => {
    expect(builtModule(join(folder, 'src/core/clock.ts'), undefined)).toBe(BUILT)
  })

  it.each([
    ['a package', 'vitest'],
    ['a helper of the tests', './kit.js'],
    ['a source that is not built', '../src/core/new.js'],
    ['a source that was removed after a build', '../src/core/removed.js'],
    ['a test file', '../src/core/clock.test.ts'],
  ])('an import of %s is left alone', (_, id) => {
    expect(builtModule(id, join(folder, 'test/any.test.ts'))).toBeUndefined()
  })

  it('Node itself loads built modules, and Vitest loads sources and helpers', () => {
    expect(BUILT_MODULES.test(BUILT)).toBe(true)
    expect(BUILT_MODULES.test(join(folder, 'src/core/clock.ts'))).toBe(false)
    expect(BUILT_MODULES.test(join(folder, 'test/kit.ts'))).toBe(false)
  })
})
