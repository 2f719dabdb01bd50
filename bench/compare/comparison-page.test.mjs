import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { barChart } from './plot.mjs'
import { TABLES, withResults } from './tables.mjs'

const urlOf = (path) => new URL(path, import.meta.url)
const read = (path) => readFileSync(urlOf(path), 'utf8')
const page = read('../../docs/project/comparison-results.md')
const results = JSON.parse(read('results.json'))
const { dependencies } = JSON.parse(read('package.json'))

describe('docs/project/comparison-results.md', () => {
  it('the comparison page shows the results that the command wrote', () => {
    expect(withResults(page, results)).toBe(page)
    for (const { id } of TABLES) expect(page).toContain(`<!-- begin ${id} -->\n| Package |`)
  })

  it('every scenario has a table with a figure in each cell, and rows of Spillway and of others', () => {
    for (const { id, columns } of TABLES) {
      expect(existsSync(urlOf(`scenarios/${id}.mjs`))).toBe(true)
      const rows = results.scenarios[id].rows
      for (const row of rows) {
        expect([id, Object.keys(row).sort()]).toEqual([id, columns.map(({ key }) => key).sort()])
      }
      const ours = rows.filter(({ name }) => name.startsWith('Spillway'))
      expect(ours.length).toBeGreaterThan(0)
      expect(rows.length - ours.length).toBeGreaterThan(1)
    }
  })

  it('the comparison was measured with the pinned versions', () => {
    const { packages } = JSON.parse(read('package-lock.json'))
    const { spillway: _, ...versions } = results.versions
    expect(versions).toEqual(dependencies)
    for (const [name, version] of Object.entries(dependencies)) {
      expect([name, packages[`node_modules/${name}`].version]).toEqual([name, version])
    }
  })

  it('the plots of the comparison show its results', () => {
    for (const { id, plot } of TABLES) {
      if (plot === undefined) continue
      const svg = barChart(plot, results.scenarios[id].rows)
      expect(svg).toBe(read(`../../docs/diagrams/compare-${id}.svg`))
      expect(page).toContain(`(../diagrams/compare-${id}.svg)`)
    }
  })
})
