// Writes docs/reference/api/ with TypeDoc: a page for each entry of the published packages, from their built declarations.
// The pages belong to the site and are not committed.

import { rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { Application, Converter, ReflectionKind } from 'typedoc'
import { ModuleRouter } from 'typedoc-plugin-markdown'
import { isMain, root } from '../run-command.mjs'
import { setupOrExit } from '../setup.mjs'
import { apiModules, pageOfModule } from './api-modules.mjs'

const OUTPUT = join(root, 'docs/reference/api')

if (isMain(import.meta.url)) {
  await setupOrExit({ build: ['packages/gateway'] })
  await buildApi()
}

export async function buildApi() {
  const modules = apiModules()
  rmSync(OUTPUT, { recursive: true, force: true })
  const app = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: modules.map(({ file }) => file),
    tsconfig: join(root, 'scripts/site/api-tsconfig.json'),
    // The declarations have been compiled before.
    skipErrorChecking: true,
    out: OUTPUT,
    name: 'TypeScript API',
    readme: 'none',
    disableSources: true,
    disableGit: true,
    excludePrivate: true,
    excludeExternals: true,
    sort: ['alphabetical'],
    logLevel: 'Error',
    router: 'page',
    entryFileName: 'index',
    hideBreadcrumbs: true,
    hidePageHeader: true,
    useCodeBlocks: true,
    sanitizeComments: true,
    parametersFormat: 'table',
    interfacePropertiesFormat: 'table',
    typeDeclarationFormat: 'table',
    propertyMembersFormat: 'table',
  })
  app.renderer.defineRouter('page', PageRouter)
  const names = new Map(modules.map(({ file, name }) => [typedocName(file), name]))
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.children) module.name = names.get(module.name) ?? module.name
  })
  const project = await app.convert()
  if (project === undefined) throw new Error('TypeDoc could not read the declarations')
  await app.generateOutputs(project)
}

/** Gives each module the page that the sidebar links to. */
class PageRouter extends ModuleRouter {
  getIdealBaseName(reflection) {
    const isModule = reflection.kind === ReflectionKind.Module
    return isModule ? pageOfModule(reflection.name) : super.getIdealBaseName(reflection)
  }

  /** TypeDoc numbers equal names in another order than VitePress numbers headings. The first heading is the type. */
  buildAnchors(target, pageTarget) {
    super.buildAnchors(target, pageTarget)
    if (target.parent?.kind !== ReflectionKind.Module) return
    for (const links of [this.anchors, this.fullUrls]) {
      const link = links.get(target)
      if (link !== undefined) links.set(target, link.replace(/-\d+$/, ''))
    }
  }
}

/** TypeDoc names a module by its path below the folder that all have in common. */
function typedocName(file) {
  return relative(join(root, 'packages'), file)
    .replaceAll('\\', '/')
    .replace(/(\/index)?\.d\.ts$/, '')
}
