// Checks the comments of options, in the built declarations: an optional option states its default, and a numeric
// option its unit and range. The wording is uniform, so that a reference can be generated from it.

import ts from 'typescript'

/** Suffixes of names that state the unit. */
const UNIT_SUFFIX =
  /(Ms|Us|Bytes|Bits|Ppm|PerMinute|Rps|Rate|Ratio|Calls|Failures|Lanes|Pods|Waiting|Queue|InFlight)$/

/** Words of a comment that state the unit. */
const UNIT_WORD =
  /\b(milliseconds?|ms|seconds?|bytes?|MiB|bits|fractions?|shares?|factor|multiples?|times|ratio|standard deviations?|units?|tokens?|requests?|calls?|attempts?|retries|jobs?|turns?|pods?|slots?|lanes?|probes?|successes|failures|starts|items|responses|entries|letters|producers|slices|tenants|users|proxies|threads|processes|connections|cores|callers|replicas|port|seed|status|database|index|number of|position|priority)\b/i

/** Types of results that other functions take: the simulator's report, and the configuration that `loadConfig` returns. */
const RESULTS = new Set([
  'SpillwayEvent',
  'Simulation',
  'RunSummary',
  'CheckResult',
  'StabilitySearch',
  'BoundaryCell',
  'GuardChange',
  'CheckedSpread',
  'Spread',
  'GatewayConfig',
])

/**
 * @param {{ subpath: string, file: string }[]} entries declaration files, one per subpath
 * @returns {string[]} one line for each problem, sorted; a type that several entries use is listed once
 */
export function optionProblems(entries) {
  return [...walkOptions(entries).problems].sort()
}

/** Every documented option as `{ type, path, typeText, isOptional, comment }`, in the order of the declarations. */
export function publicOptions(entries) {
  return walkOptions(entries).options
}

function walkOptions(entries) {
  const program = ts.createProgram({
    rootNames: entries.map(({ file }) => file),
    // Comments are read, types are not checked, so no library is loaded.
    options: { module: ts.ModuleKind.NodeNext, types: [], noLib: true },
  })
  const walk = new OptionWalk(program.getTypeChecker())
  for (const { file } of entries) walk.entry(program.getSourceFile(file))
  return walk
}

/** Follows the types of parameters, from the exported functions and the methods of exported types. */
class OptionWalk {
  problems = new Set()
  options = []
  #checker
  #seen = new Set()

  constructor(checker) {
    this.#checker = checker
  }

  entry(file) {
    const symbol = this.#checker.getSymbolAtLocation(file)
    for (const exported of symbol ? this.#checker.getExportsOfModule(symbol) : []) {
      for (const declaration of this.#declarations(exported)) this.#exported(declaration)
    }
  }

  #exported(node) {
    if (ts.isFunctionDeclaration(node)) this.#parameters(node)
    const members =
      ts.isInterfaceDeclaration(node) || ts.isClassDeclaration(node) ? node.members : []
    for (const member of members) {
      if (ts.isMethodSignature(member) || ts.isMethodDeclaration(member)) this.#parameters(member)
    }
  }

  #parameters(node) {
    for (const { type } of node.parameters) this.#input(type, `${node.name.getText()}()`, node)
  }

  /**
   * A type of values that the application passes. Functions among them are only called, so they are skipped.
   * `method`: set for types that are written in its parameters; their options are described in its comment.
   */
  #input(type, path, method) {
    if (type === undefined) return
    if (ts.isTypeLiteralNode(type)) return this.#members(type.members, path, method)
    if (ts.isTypeReferenceNode(type)) {
      for (const declaration of this.#declarations(
        this.#checker.getSymbolAtLocation(type.typeName),
      ))
        this.#declared(declaration)
      for (const argument of type.typeArguments ?? []) this.#input(argument, path, method)
      return
    }
    if (ts.isUnionTypeNode(type) || ts.isIntersectionTypeNode(type)) {
      for (const part of type.types) this.#input(part, path, method)
      return
    }
    if (ts.isParenthesizedTypeNode(type) || ts.isTypeOperatorNode(type))
      this.#input(type.type, path, method)
    if (ts.isArrayTypeNode(type)) this.#input(type.elementType, path, method)
  }

  #declared(node) {
    if (this.#seen.has(node) || RESULTS.has(node.name?.text)) return
    this.#seen.add(node)
    if (ts.isTypeAliasDeclaration(node)) this.#input(node.type, node.name.text)
    if (!ts.isInterfaceDeclaration(node)) return
    this.#members(node.members, node.name.text)
    for (const clause of node.heritageClauses ?? []) {
      for (const each of clause.types) {
        for (const declaration of this.#declarations(
          this.#checker.getSymbolAtLocation(each.expression),
        ))
          this.#declared(declaration)
        for (const argument of each.typeArguments ?? []) this.#input(argument, node.name.text)
      }
    }
  }

  #members(members, path, method) {
    for (const member of members) {
      // Functions that an application passes may be written as methods.
      const isFunction = ts.isMethodSignature(member) && path.endsWith('Options')
      if ((!ts.isPropertySignature(member) && !isFunction) || isReadonly(member)) continue
      const name = member.name.getText()
      if (method === undefined) {
        this.#option(member, name, `${path}.${name}`, commentOf(member))
        this.#record(member, `${path}.${name}`)
      } else if (isNumeric(member.type))
        this.#option(member, name, `${path}.${name}`, commentOf(method))
      this.#input(member.type, `${path}.${name}`)
    }
  }

  /**
   * Except for the member that discriminates a union, and within parameters, which the method's comment describes.
   */
  #record(member, path) {
    const [type, ...rest] = path.split('.')
    if (type.endsWith('()')) return
    const isLiteral = member.type !== undefined && ts.isLiteralTypeNode(member.type)
    if (isLiteral && member.questionToken === undefined) return
    const comment = commentOf(member)
    const typeText = typeTextOf(member)
    const isOptional = member.questionToken !== undefined
    this.options.push({ type, path: rest.join('.'), typeText, isOptional, comment })
  }

  #option(member, name, path, comment) {
    if (member.questionToken !== undefined && !/\bDefault: /.test(comment)) {
      this.problems.add(`${path}: no default; write "Default: …."`)
    }
    if (!isNumeric(member.type)) return
    if (!UNIT_SUFFIX.test(name) && !UNIT_WORD.test(comment)) this.problems.add(`${path}: no unit`)
    if (!/\bRange: /.test(comment)) this.problems.add(`${path}: no range; write "Range: …."`)
  }

  #declarations(exported) {
    if (exported === undefined) return []
    const isAlias = exported.flags & ts.SymbolFlags.Alias
    const symbol = isAlias ? this.#checker.getAliasedSymbol(exported) : exported
    return (symbol.declarations ?? []).filter(
      (each) => !each.getSourceFile().fileName.includes('/node_modules/'),
    )
  }
}

function isNumeric(type) {
  if (type === undefined) return false
  if (ts.isUnionTypeNode(type)) return type.types.some(isNumeric)
  if (type.kind === ts.SyntaxKind.NumberKeyword) return true
  return (
    ts.isTypeReferenceNode(type) && ['Duration', 'Distribution'].includes(type.typeName.getText())
  )
}

function typeTextOf(member) {
  const text = member.type?.getText().replace(/\s+/g, ' ') ?? 'unknown'
  if (!ts.isMethodSignature(member)) return text
  return `(${member.parameters.map((each) => each.getText()).join(', ')}) => ${text}`
}

/** Read-only members are facts about an object, such as `guard.name`. */
function isReadonly(member) {
  return (ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Readonly) !== 0
}

function commentOf(member) {
  return ts
    .getJSDocCommentsAndTags(member)
    .map((each) => each.getText())
    .join(' ')
    .replace(/\s*\n\s*\*\s*/g, ' ')
}
