import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { barChart } from './plot.mjs'
import { conditions, TABLES, withResults } from './tables.mjs'

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
    for (const { versions } of Object.values(results.scenarios)) {
      const { spillway: _, ...others } = versions
      expect(others).toEqual(dependencies)
    }
    for (const [name, version] of Object.entries(dependencies)) {
      expect([name, packages[`node_modules/${name}`].version]).toEqual([name, version])
    }
  })

  it('scenarios that were measured under different conditions are listed with their own', () => {
    const old = {
      date: '2026-01-01',
      node: '24.0.0',
      redis: '7.0.0',
      cores: 2,
      versions: { a: '1' },
    }
    const listed = conditions({ first: old, second: { ...old, versions: { a: '2' } }, third: old })
    expect(listed).toBe(
      'first, third: Measured on 2026-01-01 with Node 24.0.0 and Redis 7.0.0, on 2 cores. Packages: a 1.\n' +
        '\n' +
        'second: Measured on 2026-01-01 with Node 24.0.0 and Redis 7.0.0, on 2 cores. Packages: a 2.\n',
    )
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
