// Finds exported functions, types and members of types without a JSDoc comment, in the built declarations.

import ts from 'typescript'

/**
 * @param {{ subpath: string, file: string }[]} entries declaration files, one per subpath
 * @returns {string[]} one line for each name without a comment, sorted; a name that several entries export is listed once
 */
export function missingComments(entries) {
  const program = ts.createProgram({
    rootNames: entries.map(({ file }) => file),
    // Comments are read, types are not checked, so no library is loaded.
    options: { module: ts.ModuleKind.NodeNext, types: [], noLib: true },
  })
  const checker = program.getTypeChecker()
  const missing = new Set()
  for (const { subpath, file } of entries) {
    const moduleSymbol = checker.getSymbolAtLocation(program.getSourceFile(file))
    for (const exported of moduleSymbol ? checker.getExportsOfModule(moduleSymbol) : []) {
      const isAlias = exported.flags & ts.SymbolFlags.Alias
      const symbol = isAlias ? checker.getAliasedSymbol(exported) : exported
      for (const path of pathsWithoutComment(symbol)) missing.add(`${subpath}: ${path}`)
    }
  }
  return firstOfEach([...missing].sort())
}

function pathsWithoutComment(symbol) {
  const declarations = (symbol.declarations ?? []).filter(isOurs)
  if (declarations.length === 0) return []
  const own = declarations.some((each) => hasComment(each)) ? [] : [symbol.name]
  return [...own, ...declarations.flatMap((each) => membersWithoutComment(each, symbol.name))]
}

function isOurs(declaration) {
  return !declaration.getSourceFile().fileName.includes('/node_modules/')
}

/** Members of interfaces, classes and object types, at any depth. Overloads share one comment. */
function membersWithoutComment(node, path) {
  const found = []
  const commented = new Set()
  for (const member of membersOf(node)) {
    if (member.name === undefined || isPrivate(member)) continue
    const name = `${path}.${member.name.getText()}`
    if (hasComment(member)) commented.add(name)
    else found.push(name)
    found.push(...membersWithoutComment(member.type, name))
  }
  return found.filter((name) => !commented.has(name))
}

function membersOf(node) {
  if (node === undefined) return []
  if (ts.isInterfaceDeclaration(node) || ts.isTypeLiteralNode(node)) return [...node.members]
  if (ts.isClassDeclaration(node)) return [...node.members].filter((each) => !isInherited(each))
  if (ts.isTypeAliasDeclaration(node)) return membersOf(node.type)
  if (ts.isIntersectionTypeNode(node)) return node.types.flatMap(membersOf)
  return []
}

/** Constructors need no comment beside that of their class; nor do methods that every error or object has. */
function isInherited(member) {
  return (
    ts.isConstructorDeclaration(member) || ['toJSON', 'message'].includes(member.name?.getText())
  )
}

function isPrivate(member) {
  const byKeyword = ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private
  return byKeyword !== 0 || ts.isPrivateIdentifier(member.name)
}

function hasComment(declaration) {
  const node = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration
  return ts.getJSDocCommentsAndTags(node).length > 0
}

/** A type that several entries export is listed once. */
function firstOfEach(lines) {
  const seen = new Set()
  return lines.filter((line) => {
    const name = line.slice(line.indexOf(': ') + 2)
    return !seen.has(name) && seen.add(name)
  })
}
