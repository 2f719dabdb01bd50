import { defineConfig } from 'vitepress'
import { project } from '../../packages/spillway/src/core/project.ts'
import { inlineDiagrams } from './diagrams.mjs'
import { repositoryLinks } from './links.mjs'
import { navigation, sidebar } from './sidebar.mjs'
import { emptyHeaderCells } from './tables.mjs'

const { pathname } = new URL(`${project.documentation}/`)

/** Set by tests of the site, because the TypeScript API takes most of the build. */
const isWithoutApi = process.env.SPILLWAY_SITE_WITHOUT_API !== undefined

/** The search needs only the text. Colouring code a second time would take a fifth of the build. */
function textForSearch(source, env, md) {
  const { highlight } = md.options
  md.set({ highlight: null })
  const html = md.render(source, env)
  md.set({ highlight })
  return env.frontmatter?.search === false ? '' : html
}

export default defineConfig({
  title: 'Spillway',
  description: 'Shared limits, circuit breakers and load shedding for a fleet of Node.js processes',
  lang: 'en',
  base: pathname,
  cleanUrls: true,
  // Of programs that the reader has started.
  ignoreDeadLinks: isWithoutApi ? [/:\/\/localhost/, /(^|\/)api\//] : 'localhostLinks',
  srcExclude: isWithoutApi ? ['reference/api/**'] : [],
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${pathname}logo.svg` }]],
  sitemap: { hostname: `${project.documentation}/` },
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config(md) {
      repositoryLinks(md)
      inlineDiagrams(md)
      emptyHeaderCells(md)
    },
  },
  themeConfig: {
    logo: '/logo.svg',
    nav: navigation(),
    sidebar: sidebar(),
    outline: { level: [2, 3] },
    search: { provider: 'local', options: { _render: textForSearch } },
    socialLinks: [{ icon: 'github', link: project.repository }],
    editLink: {
      pattern: `${project.repository}/edit/main/docs/:path`,
      text: 'Edit this page on GitHub',
    },
  },
})
