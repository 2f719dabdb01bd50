import { expect, it } from 'vitest'
import { manifestProblems, packageProblems } from './package-rules.mjs'
import { root } from './run-command.mjs'

it('every package has a README, a license, types and the address of the repository', () => {
  // Files of an earlier build in dist are ignored here; they matter only for publishing.
  const problems = packageProblems(root).filter((problem) => !problem.includes(': dist/'))
  expect(problems).toEqual([])
})

it('a manifest with another address, without keywords and without types is reported', () => {
  const repository = {
    license: 'MIT',
    homepage: 'https://example.com/here#readme',
    repository: { type: 'git', url: 'git+https://example.com/here.git' },
    engines: { node: '>=20.19' },
  }
  const manifest = {
    license: 'MIT',
    type: 'module',
    description: 'a package',
    homepage: 'https://example.com/there/tree/main/packages/a#readme',
    repository: { ...repository.repository, directory: 'packages/a' },
    bugs: 'https://example.com/here/issues',
    engines: { node: '>=20.19' },
    files: ['dist'],
    exports: { '.': { default: './dist/index.js' }, './package.json': './package.json' },
  }
  expect(manifestProblems('a', manifest, repository)).toEqual([
    'homepage should be "https://example.com/here/tree/main/packages/a#readme"',
    'keywords is missing',
    'exports["."] should begin with types',
  ])
})
