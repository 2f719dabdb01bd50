/** The scenarios in examples/ are those in the docs and can be run. */
import { readdirSync, readFileSync } from 'node:fs'
import { METRICS, readScenario, simulate } from '@spillway/simulator'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'

const at = (path: string) => new URL(`../../../${path}`, import.meta.url)
const files = readdirSync(at('examples/scenarios'))
const textOf = (file: string) => readFileSync(at(`examples/scenarios/${file}`), 'utf8')
const page = readFileSync(at('docs/operations/simulator.md'), 'utf8')

describe('scenario files', () => {
  it.each(files)('scenario file %s is valid', (file) => {
    expect(readScenario(parse(textOf(file)), file).name).toBe(file.replace('.yaml', ''))
  })

  it('the docs contain checkout.yaml unchanged', () => {
    expect(page).toContain(`\`\`\`yaml\n${textOf('checkout.yaml')}\`\`\``)
  })

  it('checkout.yaml holds with Spillway and fails without', async () => {
    const { checks, naiveFails } = await simulate(parse(textOf('checkout.yaml')))
    expect(checks.filter(({ spillway }) => !spillway.holds)).toEqual([])
    expect(naiveFails).toBe(true)
  })
})

describe('scenario docs', () => {
  it.each(Object.entries(METRICS))('the docs explain the metric %s', (name, description) => {
    expect(page).toContain(`| \`${name}\` | ${description} |`)
  })
})
