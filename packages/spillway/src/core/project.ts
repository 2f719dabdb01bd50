/**
 * Names and addresses of the project. All are placeholders until the first release. Errors, the command, the alerts and
 * the documentation site read them from here. After a change run `npm run docs` and `npm run alerts`.
 */
export const project = {
  /** Name of the library on the npm registry. */
  library: 'spillway',
  /** Scope of the other packages, such as `@spillway/gateway`. */
  scope: '@spillway',
  repository: 'https://github.com/spillway-js/spillway',
  /** Base URL of the documentation site. */
  documentation: 'https://spillway-js.github.io/spillway',
} as const

/** The URL of a page of the documentation, such as `reference/error-codes#shed`. */
export function documentationUrl(page: string): string {
  return `${project.documentation}/${page}`
}
