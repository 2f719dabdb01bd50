import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root } from './run-command.mjs'

const dependenciesOf = (name) =>
  JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8')).dependencies ?? {}

it('the library has no runtime dependency', () => {
  expect(dependenciesOf('spillway')).toEqual({})
})

it('the dependencies of the packages beside the library have exact versions', () => {
  const versions = ['gateway', 'mock-vendor', 'simulator'].flatMap((name) =>
    Object.entries(dependenciesOf(name)),
  )
  expect(versions.length).toBeGreaterThan(0)
  expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
})
