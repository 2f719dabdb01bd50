// Adds the comments of the library's options to the JSON Schema of the gateway, where both have the same option.
// The gateway's own options have their descriptions beside their checks, in packages/gateway/src/config/shapes.

import ts from 'typescript'

/** Parts of the schema whose options are those of a type of the library. */
const ROOTS = [
  { path: 'vendors.*', type: 'GuardOptions' },
  { path: 'vendors.*.quota', type: 'QuotaSetting' },
  { path: 'vendors.*.models', type: 'GuardOptions', option: 'lanes' },
  { path: 'jobQueues.*', type: 'JobQueueOptions' },
  { path: 'redis', type: 'RedisStoreOptions' },
]

/**
 * @param {object} schema of the gateway, as its checks describe it
 * @param {string[]} files declaration files of the library that export the types
 * @returns {object} the schema with a description for each option that has a comment in the library
 */
export function withLibraryTexts(schema, files) {
  const types = new LibraryTypes(files)
  const described = structuredClone(schema)
  for (const { path, type, option } of ROOTS) {
    const declared = types.named(type)
    const options = option === undefined ? declared : types.property(declared, option).type
    for (const node of nodesAt(described, path.split('.'))) types.describe(node, options)
  }
  return described
}

/** `*` stands for any name. */
function nodesAt(schema, [name, ...rest]) {
  if (name === undefined) return [schema]
  const next = name === '*' ? schema.additionalProperties : schema.properties[name]
  return nodesAt(next, rest)
}

class LibraryTypes {
  #program
  #checker
  #files

  constructor(files) {
    this.#program = ts.createProgram({
      rootNames: files,
      options: { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, types: ['node'] },
    })
    this.#checker = this.#program.getTypeChecker()
    this.#files = files
  }

  named(name) {
    for (const file of this.#files) {
      const module = this.#checker.getSymbolAtLocation(this.#program.getSourceFile(file))
      const exported = this.#checker.getExportsOfModule(module).find((each) => each.name === name)
      if (exported === undefined) continue
      const isAlias = exported.flags & ts.SymbolFlags.Alias
      const symbol = isAlias ? this.#checker.getAliasedSymbol(exported) : exported
      return this.#checker.getDeclaredTypeOfSymbol(symbol)
    }
    throw new Error(`the library exports no type ${name}`)
  }

  /** The type and the comment of a property, which one of several alternatives may have. */
  property(type, name) {
    for (const each of alternatives(type)) {
      const symbol = this.#checker.getPropertyOfType(each, name)
      if (symbol === undefined) continue
      return { type: this.#checker.getTypeOfSymbol(symbol), comment: commentOf(symbol) }
    }
    return undefined
  }

  /** Sets the description of each option inside `schema` that has none. */
  describe(schema, type) {
    for (const [name, option] of Object.entries(schema.properties ?? {})) {
      const found = this.property(type, name)
      if (found === undefined) continue
      if (option.description === undefined && found.comment !== '') {
        option.description = textFor(option, found.comment)
      }
      this.describe(option, found.type)
    }
    for (const each of schema.anyOf ?? []) this.describe(each, type)
    if (schema.items !== undefined) this.#inside(schema.items, type, ts.IndexKind.Number)
    if (typeof schema.additionalProperties === 'object') {
      this.#inside(schema.additionalProperties, type, ts.IndexKind.String)
    }
  }

  #inside(schema, type, kind) {
    for (const each of alternatives(type)) {
      const inner = this.#checker.getIndexTypeOfType(each, kind)
      if (inner !== undefined) this.describe(schema, inner)
    }
  }
}

function alternatives(type) {
  return type.isUnion() ? type.types : [type]
}

function commentOf(symbol) {
  const [declaration] = symbol.declarations ?? []
  const comments = declaration === undefined ? [] : ts.getJSDocCommentsAndTags(declaration)
  return comments
    .map((each) => (typeof each.comment === 'string' ? each.comment : ''))
    .join(' ')
    .replace(/\s+/g, ' ')
    .trim()
}

/** The default of the gateway's check counts: it may differ from the one in the comment. */
function textFor(option, comment) {
  return option.default === undefined ? comment : comment.replace(/ ?\bDefault: .*?\.(?=\s|$)/, '')
}
