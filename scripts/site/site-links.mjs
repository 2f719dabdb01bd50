// Links and anchors of the built site. VitePress itself fails on links to missing pages, but not on missing anchors.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * @param {string} folder the built site
 * @param {string} base the path under which it is served, such as `/spillway/`
 * @returns every page by its address, with the ids in it and the internal links it has
 */
export function readSite(folder, base) {
  const pages = new Map()
  for (const name of readdirSync(folder, { recursive: true })) {
    const file = name.replaceAll('\\', '/')
    if (!file.endsWith('.html') || file === '404.html') continue
    const address = base + file.replace(/(^|\/)index\.html$/, '$1').replace(/\.html$/, '')
    pages.set(address, readPage(readFileSync(join(folder, file), 'utf8'), address, base))
  }
  return pages
}

function readPage(html, address, base) {
  const ids = new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => decode(id)))
  const links = new Set()
  for (const [, href] of html.matchAll(/<a\s[^>]*?href="([^"]+)"/g)) {
    const { origin, pathname, hash } = new URL(decode(href), `http://site${address}`)
    if (origin === 'http://site' && pathname.startsWith(base)) links.add(pathname + hash)
  }
  return { ids, links: [...links] }
}

function decode(text) {
  return text.replaceAll('&amp;', '&').replaceAll('&quot;', '"').replaceAll('&#39;', "'")
}

/** One line for each broken link. */
export function linkProblems(pages) {
  const problems = []
  for (const [address, { links }] of pages) {
    for (const link of links) {
      const [path, anchor = ''] = link.split('#')
      const target = pages.get(path)
      if (target === undefined) problems.push(`${address}: no page ${path}`)
      else if (anchor !== '' && !target.ids.has(decodeURIComponent(anchor)))
        problems.push(`${address}: no heading #${anchor} in ${path}`)
    }
  }
  return problems
}

/** One line for each page without an entry in the sidebar, and each entry that is wrongly marked as planned. */
export function sidebarProblems(files, sections, pagesOf) {
  const listed = new Set(sections.flatMap(pagesOf))
  const written = files.map((file) => file.replace(/\.md$/, '')).filter((page) => page !== 'index')
  const planned = new Set(sections.flatMap(plannedIn))
  return [
    ...written
      .filter((page) => !listed.has(page))
      .map((page) =>
        planned.has(page)
          ? `docs/${page}.md exists: remove its mark planned in docs/.vitepress/sidebar.mjs`
          : `docs/${page}.md is in no section of docs/.vitepress/sidebar.mjs`,
      ),
    ...[...listed]
      .filter((page) => !written.includes(page))
      .map((page) => `docs/.vitepress/sidebar.mjs lists docs/${page}.md, which does not exist`),
  ]
}

function plannedIn({ folder, items }) {
  return items.flatMap((item) =>
    item.items
      ? plannedIn({ folder, items: item.items })
      : item.planned
        ? [`${folder}/${item.page}`]
        : [],
  )
}
