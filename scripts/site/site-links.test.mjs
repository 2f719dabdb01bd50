import { describe, expect, it } from 'vitest'
import { linkProblems, sidebarProblems } from './site-links.mjs'

const page = (ids, links) => ({ ids: new Set(ids), links })
const SECTION = { folder: 'start', items: [{ page: 'index' }, { page: 'tutorial', planned: true }] }
const pagesOf = ({ folder, items }) =>
  items.filter(({ planned }) => !planned).map((item) => `${folder}/${item.page}`)

describe('links of the site', () => {
  it('links to pages and headings that exist are no problem', () => {
    const pages = new Map([
      ['/base/', page(['top'], ['/base/other#two', '/base/#top'])],
      ['/base/other', page(['two'], ['/base/'])],
    ])
    expect(linkProblems(pages)).toEqual([])
  })

  it('a link to a missing page or heading is reported with the page that has it', () => {
    const pages = new Map([['/base/', page([], ['/base/gone', '/base/#gone'])]])
    expect(linkProblems(pages)).toEqual([
      '/base/: no page /base/gone',
      '/base/: no heading #gone in /base/',
    ])
  })
})

describe('sidebar of the site', () => {
  it('a page that is in no section is reported', () => {
    const files = ['index.md', 'start/index.md', 'start/lost.md']
    expect(sidebarProblems(files, [SECTION], pagesOf)).toEqual([
      'docs/start/lost.md is in no section of docs/.vitepress/sidebar.mjs',
    ])
  })

  it('an entry without a page is reported, and a written page that is marked as planned', () => {
    expect(sidebarProblems(['start/tutorial.md'], [SECTION], pagesOf)).toEqual([
      'docs/start/tutorial.md exists: remove its mark planned in docs/.vitepress/sidebar.mjs',
      'docs/.vitepress/sidebar.mjs lists docs/start/index.md, which does not exist',
    ])
  })
})
