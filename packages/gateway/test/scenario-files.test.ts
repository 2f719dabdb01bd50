/** The scenarios in examples/ are what the docs show, and can be run. */
import { readdirSync, readFileSync } from 'node:fs'
import { METRICS, readScenario, simulate } from '@spillway/simulator'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'

const at = (path: string) => new URL(`../../../${path}`, import.meta.url)
const files = readdirSync(at('examples/scenarios'))
const textOf = (file: string) => readFileSync(at(`examples/scenarios/${file}`), 'utf8')
const page = readFileSync(at('docs/simulator.md'), 'utf8')

describe('a scenario in a file', () => {
  it.each(files)('is one: %s', (file) => {
    expect(readScenario(parse(textOf(file)), file).name).toBe(file.replace('.yaml', ''))
  })

  it('stands in the docs as it is', () => {
    expect(page).toContain(`\`\`\`yaml\n${textOf('checkout.yaml')}\`\`\``)
  })

  it('holds with Spillway, and not without', async () => {
    const { checks, naiveFails } = await simulate(parse(textOf('checkout.yaml')))
    expect(checks.filter(({ spillway }) => !spillway.holds)).toEqual([])
    expect(naiveFails).toBe(true)
  })
})

describe('the docs', () => {
  it.each(Object.entries(METRICS))('say what %s is', (name, says) => {
    expect(page).toContain(`| \`${name}\` | ${says} |`)
  })
})
