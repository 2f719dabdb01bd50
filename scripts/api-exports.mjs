// Reads the exports of built declaration files with the TypeScript compiler.

import ts from 'typescript'

const printer = ts.createPrinter({ removeComments: true })

/**
 * @param {{ subpath: string, file: string }[]} entries declaration files, one per subpath
 * @returns {{ subpath: string, declarations: string[] }[]} sorted by exported name, no comments
 */
export function describeExports(entries) {
  const program = ts.createProgram({
    rootNames: entries.map(({ file }) => file),
    options: {
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2023,
      types: ['node'],
      skipLibCheck: true,
    },
  })
  const checker = program.getTypeChecker()
  return entries.map(({ subpath, file }) => {
    const moduleSymbol = checker.getSymbolAtLocation(program.getSourceFile(file))
    const exports = moduleSymbol ? checker.getExportsOfModule(moduleSymbol) : []
    const sorted = exports.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    return { subpath, declarations: sorted.map((symbol) => describe(symbol, checker)) }
  })
}

function describe(exported, checker) {
  const isAlias = exported.flags & ts.SymbolFlags.Alias
  const symbol = isAlias ? checker.getAliasedSymbol(exported) : exported
  const texts = (symbol.declarations ?? []).map(print)
  if (symbol.name !== exported.name) texts.unshift(`// exported as ${exported.name}`)
  return texts.join('\n')
}

function print(declaration) {
  const file = declaration.getSourceFile()
  if (file.fileName.includes('/node_modules/')) {
    return `// from ${file.fileName.split('/node_modules/').at(-1)}\nexport type { ${declaration.name.text} }`
  }
  const node = ts.isVariableDeclaration(declaration)
    ? declaration.parent.parent
    : withoutPrivateMembers(declaration)
  return printer.printNode(ts.EmitHint.Unspecified, node, file)
}

function withoutPrivateMembers(node) {
  if (!ts.isClassDeclaration(node)) return node
  const members = node.members.filter((member) => !isPrivate(member))
  const { modifiers, name, typeParameters, heritageClauses } = node
  return ts.factory.updateClassDeclaration(
    node,
    modifiers,
    name,
    typeParameters,
    heritageClauses,
    members,
  )
}

function isPrivate(member) {
  const byKeyword = ts.getCombinedModifierFlags(member) & ts.ModifierFlags.Private
  return byKeyword !== 0 || (member.name !== undefined && ts.isPrivateIdentifier(member.name))
}
