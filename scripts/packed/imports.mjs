// Imports every entry of every installed package of Spillway. Runs in the folder where they are installed.
import { existsSync, readdirSync, readFileSync } from 'node:fs'

const modules = new URL('./node_modules/', import.meta.url)
const scoped = new URL('@spillway/', modules)
const names = [
  'spillway',
  ...(existsSync(scoped) ? readdirSync(scoped).map((name) => `@spillway/${name}`) : []),
]
for (const name of names) {
  const { exports } = JSON.parse(readFileSync(new URL(`${name}/package.json`, modules), 'utf8'))
  for (const subpath of Object.keys(exports).filter((each) => !each.endsWith('.json'))) {
    const entry = await import(`${name}${subpath.slice(1)}`)
    if (Object.keys(entry).length === 0)
      throw new Error(`${name}${subpath.slice(1)} exports nothing`)
  }
}
