/** Access to a gateway's admin port, by its configuration. The rules are those of the library's dashboard. */
import type { OperatorAccessOptions } from 'spillway/http'

export interface AdminAccess {
  readonly host: string
  readonly token: string | undefined
  readonly readAccess: OperatorAccessOptions['readAccess']
  readonly hosts: readonly string[]
}

export function accessOf({ host, token, readAccess, hosts }: AdminAccess): OperatorAccessOptions {
  return {
    ...(token !== undefined && { token }),
    ...(readAccess !== undefined && { readAccess }),
    hosts,
    exposed: !/^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(host),
  }
}
