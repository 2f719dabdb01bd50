// The text side of build-lua.mjs: from Lua files to the TypeScript that ships them.

import { createHash } from 'node:crypto'
import { inlineConstants } from './lua-constants.mjs'

const INCLUDE = /^\s*--- @include (\S+)\s*$/
const COMMENT = /^--/
const LONG_BRACKET = /\[=*\[/

/**
 * Puts one script together: includes in their place, each once, without comments, blank lines and
 * indentation, which the server would only have to hash and parse, and with constants in their place.
 *
 * @param {string} name file name without extension, such as `take-permits`
 * @param {(name: string) => string | undefined} read the text of a script or, as `include/NAME`, of
 *   an include
 */
export function assemble(name, read) {
  const included = new Set()

  /** `trail`: the chain of includes from the script to this file. */
  function linesOf(file, trail) {
    const way = [...trail, file]
    if (trail.includes(file)) throw new Error(`includes go in a circle: ${way.join(' > ')}`)
    const text = read(file)
    if (text === undefined) {
      const asking = trail.at(-1)
      throw new Error(asking ? `${asking}.lua: there is no ${file}.lua` : `no ${file}.lua`)
    }
    return text.split(/\r?\n/).flatMap((line, index) => {
      const part = INCLUDE.exec(line)?.[1]
      if (part !== undefined) return include(`include/${part}`, way)
      if (LONG_BRACKET.test(line)) {
        // Its inside may look like a comment, or be meant to be indented.
        const where = `${file}.lua:${index + 1}`
        throw new Error(`${where}: long strings and long comments cannot be shortened`)
      }
      const code = line.trim()
      return code === '' || COMMENT.test(code) ? [] : [code]
    })
  }

  function include(file, way) {
    if (included.has(file) && !way.includes(file)) return []
    included.add(file)
    return linesOf(file, way)
  }

  return inlineConstants(name, linesOf(name, [])).join('\n')
}

/** @param {{ name: string, text: string }[]} scripts assembled ones, in the order of the output */
export function toTypeScript(scripts) {
  const entries = scripts.map(({ name, text }) => {
    const key = keyOf(name)
    const sha = createHash('sha1').update(text).digest('hex')
    const literal = text.replace(/[\\`]|\$\{/g, '\\$&')
    return `  ${key}: {\n    name: '${key}',\n    sha: '${sha}',\n    text: \`${literal}\`,\n  },\n`
  })
  const header = '// The packed scripts, generated from lua/ by npm run lua; do not edit.\n\n'
  // Without this type, the declarations would repeat the text of every script.
  const type =
    'interface Script {\n  readonly name: string\n  readonly sha: string\n  readonly text: string\n}\n\n'
  const names = scripts.map(({ name }) => `'${keyOf(name)}'`).join(' | ') || 'never'
  return `${header}${type}export const SCRIPTS: Readonly<Record<${names}, Script>> = {\n${entries.join('')}}\n`
}

/** The name of a script in TypeScript. */
export function keyOf(name) {
  return name.replace(/-(\w)/g, (_, letter) => letter.toUpperCase())
}
