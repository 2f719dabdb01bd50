// Pages are also read on GitHub, so links to sources are relative paths. On the site they lead to the repository.

import { posix } from 'node:path'
import { project } from '../../packages/spillway/src/core/project.ts'

/** Pages that include a file of the repository's root. Their links are relative to the root. */
const INCLUDED_FROM_ROOT = new Set([
  'project/changelog.md',
  'project/contributing.md',
  'project/internals.md',
  'project/security.md',
  'project/versioning.md',
])
const EXTERNAL = /^([a-z]+:|#|\/)/
/** Files of the root that are pages of the site as well. */
const ROOT_PAGES = {
  'ARCHITECTURE.md': 'docs/project/internals.md',
  'CHANGELOG.md': 'docs/project/changelog.md',
  'CONTRIBUTING.md': 'docs/project/contributing.md',
  'SECURITY.md': 'docs/project/security.md',
  'VERSIONING.md': 'docs/project/versioning.md',
}

export function repositoryLinks(md) {
  const render = md.renderer.rules.link_open
  md.renderer.rules.link_open = (tokens, index, options, env, self) => {
    const token = tokens[index]
    const href = token.attrGet('href')
    if (href && !EXTERNAL.test(href)) token.attrSet('href', siteLink(href, env.relativePath))
    return render(tokens, index, options, env, self)
  }
}

/** `href` as seen from `page`, a path below docs/. */
export function siteLink(href, page) {
  const [path, hash = ''] = href.split(/(?=#)/)
  const from = INCLUDED_FROM_ROOT.has(page) ? '' : posix.dirname(`docs/${page}`)
  const file = posix.join(from, path).replace(/\/$/, '')
  const target = ROOT_PAGES[file] ?? file
  if (target.startsWith('docs/') && !target.startsWith('docs/images/')) {
    return relative(posix.relative(posix.dirname(`docs/${page}`), target)) + hash
  }
  const kind = posix.extname(target) === '' ? 'tree' : 'blob'
  return `${project.repository}/${kind}/main/${target}${hash}`
}

function relative(path) {
  return path.startsWith('.') ? path : `./${path}`
}
