// test-group: io

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { changesOf, nextVersion, release, releaseChangelog } from './release.mjs'
import { root } from './run-command.mjs'
import { createSbom } from './sbom.mjs'

const CHANGELOG =
  '# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n\n## 0.0.1 - 2026-01-02\n\n- First.\n'

const folders = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

const PACKAGES = ['dashboard', 'gateway', 'mock-vendor', 'simulator', 'spillway']
const COPIED = [
  'package.json',
  'package-lock.json',
  ...PACKAGES.map((name) => `packages/${name}/package.json`),
  'packages/spillway/src/core/version.ts',
  'deploy/image/Dockerfile',
  'deploy/kubernetes/base/kustomization.yaml',
  'deploy/helm/spillway/Chart.yaml',
]

/** A repository with the files of this one that a release changes. */
function createRepository(branch = 'main') {
  const folder = mkdtempSync(join(tmpdir(), 'release-'))
  folders.push(folder)
  for (const file of COPIED) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  writeFileSync(join(folder, 'CHANGELOG.md'), CHANGELOG)
  const git = (...args) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim()
  git('init', '--quiet', '--initial-branch', branch)
  git('config', 'user.name', 'Test')
  git('config', 'user.email', 'test@example.com')
  git('add', '--all')
  git('commit', '--quiet', '--message', 'first')
  const read = (file) => readFileSync(join(folder, file), 'utf8')
  const lines = []
  const make = (args, runChecks = () => true) =>
    release({ folder, args, today: '2026-11-18', runChecks, print: (line) => lines.push(line) })
  return { folder, git, read, make, lines }
}

const current = JSON.parse(readFileSync(join(root, 'packages/spillway/package.json'))).version

describe('npm run release', () => {
  it('a release sets one version everywhere, moves the changelog, commits and tags', () => {
    const { git, read, make } = createRepository()
    const version = make(['minor'])
    expect(version).toBe(nextVersion(current, 'minor'))
    const names = PACKAGES.map((name) => JSON.parse(read(`packages/${name}/package.json`)))
    const ours = new Set(names.map(({ name }) => name))
    const lock = JSON.parse(read('package-lock.json'))
    const locked = PACKAGES.map((name) => lock.packages[`packages/${name}`])
    for (const manifest of [...names, ...locked]) {
      expect(manifest.version).toBe(version)
      const { dependencies, devDependencies, peerDependencies } = manifest
      const ranges = Object.entries({ ...dependencies, ...devDependencies, ...peerDependencies })
      for (const [name, range] of ranges)
        if (ours.has(name)) expect([name, range]).toEqual([name, version])
    }
    for (const file of COPIED.slice(-4)) {
      expect(read(file)).toContain(version)
      expect(read(file)).not.toMatch(new RegExp(`(ersion|VERSION|newTag).*${current}`))
    }
    expect(read('CHANGELOG.md')).toContain(
      `## Unreleased\n\n## ${version} - 2026-11-18\n\n### Added\n\n- A thing.\n\n## 0.0.1`,
    )
    expect(git('status', '--porcelain')).toBe('')
    expect(git('log', '--format=%s', '-1')).toBe(`release: ${version}`)
    expect(git('describe', '--exact-match')).toBe(`v${version}`)
    expect(git('remote')).toBe('')
  })

  it('a release with --dry-run changes nothing and prints files and changes', () => {
    const { git, make, lines } = createRepository()
    const version = make(['patch', '--dry-run'], () => {
      throw new Error('checks were run')
    })
    expect(git('status', '--porcelain')).toBe('')
    expect(git('tag')).toBe('')
    expect(lines.join('\n')).toContain(`## ${version} - 2026-11-18`)
    expect(lines).toContain('  packages/gateway/package.json')
  })

  it('a release needs main, a clean tree, unreleased changes, green checks and a new tag', () => {
    expect(() => createRepository('topic').make(['patch'])).toThrow('this is topic')
    const dirty = createRepository()
    writeFileSync(join(dirty.folder, 'new.txt'), '')
    expect(() => dirty.make(['patch'])).toThrow('not clean')
    const red = createRepository()
    expect(() => red.make(['patch'], () => false)).toThrow('checks failed')
    expect(red.git('log', '--format=%s')).toBe('first')
    const twice = createRepository()
    twice.make(['9.0.0'])
    expect(() => twice.make(['9.1.0'])).toThrow('no unreleased changes')
    const tagged = createRepository()
    tagged.git('tag', 'v9.0.0')
    expect(() => tagged.make(['9.0.0'])).toThrow('the tag v9.0.0 exists')
    expect(() => tagged.make([])).toThrow('usage: npm run release')
  })

  it.each([
    ['0.1.9', 'patch', '0.1.10'],
    ['0.1.9', 'minor', '0.2.0'],
    ['0.1.9', 'major', '1.0.0'],
    ['0.1.9', '0.1.10', '0.1.10'],
  ])('the version after %s for %s is %s', (from, wanted, next) => {
    expect(nextVersion(from, wanted)).toBe(next)
  })

  it.each(['0.1.9', '0.1.8', '0.0.99', 'next', '1.0', '01.0.0'])(
    'version %s is rejected after 0.1.9',
    (wanted) => {
      expect(() => nextVersion('0.1.9', wanted)).toThrow(wanted)
    },
  )

  it('the notes of a release are the changes of its section', () => {
    const { text } = releaseChangelog(CHANGELOG, '0.1.0', '2026-11-18')
    expect(changesOf(text, '0.1.0')).toBe('### Added\n\n- A thing.\n')
    expect(changesOf(text, '0.0.1')).toBe('- First.\n')
    expect(() => changesOf(text, '0.0.2')).toThrow('no section for 0.0.2')
  })
})

describe('npm run sbom', () => {
  it('the bill of materials lists what the gateway runs, and no development dependency', async () => {
    const { bomFormat, components } = JSON.parse(await createSbom())
    const { version, dependencies } = JSON.parse(
      readFileSync(join(root, 'packages/gateway/package.json')),
    )
    expect(bomFormat).toBe('CycloneDX')
    const packages = components.map(({ purl }) => decodeURIComponent(purl))
    for (const [each, at] of Object.entries({ ...dependencies, spillway: version })) {
      expect(packages).toContain(`pkg:npm/${each}@${at}`)
    }
    // Dependencies of dependencies have to be listed, too.
    expect(packages.some((each) => each.startsWith('pkg:npm/@redis/client@'))).toBe(true)
    expect(packages.filter((each) => /vitest|typescript|fastify|nestjs/.test(each))).toEqual([])
    const others = components.filter(({ purl }) => !/npm\/(%40spillway|spillway)/.test(purl))
    expect(others.filter(({ hashes = [] }) => hashes.length === 0)).toEqual([])
  })
})

describe('GitHub workflows', () => {
  const read = (name) => readFileSync(join(root, '.github/workflows', name), 'utf8')

  it.each(['ci.yml', 'release.yml'])(
    '%s pins every action to a commit, may only read by default, and ends in time',
    (name) => {
      const { permissions, jobs } = parse(read(name))
      expect(permissions).toEqual({ contents: 'read' })
      for (const job of Object.values(jobs)) {
        expect(job['timeout-minutes']).toBeGreaterThan(0)
        for (const { uses } of job.steps) {
          if (uses !== undefined) expect(uses).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/)
        }
      }
      for (const [line] of read(name).matchAll(/uses: .*/g))
        expect(line).toMatch(/ # v\d+\.\d+\.\d+$/)
    },
  )

  it('CI runs on the oldest supported major of Node and all later even ones', () => {
    expect(parse(read('ci.yml')).jobs.test.strategy.matrix.node).toEqual([20, 22, 24, 26])
  })

  it('only the job that publishes to npm and the image get a token for provenance', () => {
    const { jobs } = parse(read('release.yml'))
    const signing = Object.entries(jobs).filter(([, job]) => job.permissions?.['id-token'])
    expect(signing.map(([name]) => name)).toEqual(['npm', 'image'])
    const writing = Object.entries(jobs).filter(([, job]) => job.permissions?.contents === 'write')
    expect(writing.map(([name]) => name)).toEqual(['github'])
  })
})
