// npm run check -- site: builds the documentation site, and finds links and anchors that lead nowhere, in the site and in
// the Markdown files outside of it.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { pagesOf, SECTIONS } from '../docs/.vitepress/sidebar.mjs'
import { project } from '../packages/spillway/dist/core/project.js'
import { root, run } from './run-command.mjs'
import { buildSite, SITE_FOLDER } from './site/build-site.mjs'
import { linkProblems, readSite, sidebarProblems } from './site/site-links.mjs'

const { code, output } = await buildSite()
if (code !== 0) {
  process.stdout.write(output)
  process.exit(1)
}
const { pathname: base } = new URL(`${project.documentation}/`)
const pages = readSite(SITE_FOLDER, base)
const files = readdirSync(join(root, 'docs'), { recursive: true })
  .map((name) => name.replaceAll('\\', '/'))
  .filter((name) => name.endsWith('.md') && !name.startsWith('.'))
const problems = [
  ...sidebarProblems(files, SECTIONS, pagesOf),
  ...linkProblems(pages),
  ...(await otherProblems()),
]
process.stdout.write(`${pages.size} pages\n${problems.map((line) => `${line}\n`).join('')}`)
process.exitCode = problems.length > 0 ? 1 : 0

/** Relative links of Markdown files outside docs/ to files that do not exist. */
async function otherProblems() {
  const { stdout } = await run('git', ['ls-files', '*.md', ':!docs'])
  return stdout
    .trim()
    .split('\n')
    .flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8').replace(/^(`{3,}).*?^\1/gms, '')
      return [...text.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"/g)]
        .map(([, link, source]) => link ?? source)
        .filter((link) => !/^([a-z]+:|#)/.test(link))
        .map((link) => join(root, dirname(file), link.split('#')[0]))
        .filter((path) => !existsSync(path))
        .map((path) => `${file}: no file ${relative(root, path)}`)
    })
}
