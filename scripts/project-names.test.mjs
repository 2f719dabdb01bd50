// test-group: io

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { project } from '../packages/spillway/dist/core/project.js'
import { root } from './run-command.mjs'

const manifests = readdirSync(join(root, 'packages')).map((folder) => ({
  folder,
  ...JSON.parse(readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8')),
}))

it('packages have the names and the repository of core/project.ts', () => {
  for (const { folder, name, repository, homepage, bugs } of manifests) {
    const expected = folder === 'spillway' ? project.library : `${project.scope}/${folder}`
    expect(name).toBe(expected)
    expect(repository.url).toBe(`git+${project.repository}.git`)
    expect(homepage).toBe(`${project.repository}/tree/main/packages/${folder}#readme`)
    expect(bugs).toBe(`${project.repository}/issues`)
  }
})

it('READMEs of packages link only to the documentation of core/project.ts', () => {
  for (const { folder } of manifests) {
    const text = readFileSync(join(root, 'packages', folder, 'README.md'), 'utf8')
    const links = text.match(/https:\/\/[\w.-]*github\.io[^\s)]*/g) ?? []
    expect(links.filter((link) => !link.startsWith(`${project.documentation}/`))).toEqual([])
  }
})
