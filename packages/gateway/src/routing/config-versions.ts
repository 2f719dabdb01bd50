/**
 * The configurations in use. A request keeps the one that was in force when it arrived; later requests use the new one.
 * Guards, connections and lanes that did not change are shared by both. Those that only the old one uses are closed
 * when its last request has ended.
 */
import type { Spillway } from 'spillway'
import type { GatewayConfig, VendorConfig } from '../config/config.js'
import { namedLanes } from '../vendor/named-lanes.js'
import { Vendor } from '../vendor/vendor.js'
import { ConfigVersion, type RequestHooks } from './config-version.js'

export interface ConfigVersionsOptions {
  readonly spillway: Spillway
  readonly hooks: RequestHooks
  /** Address of a vendor. */
  urlOf(vendor: VendorConfig): string
}

export class ConfigVersions {
  current: ConfigVersion
  readonly #options: ConfigVersionsOptions
  /** The newest of each name, as long as it is not closed. */
  readonly #vendors = new Map<string, Vendor>()
  readonly #closing = new Set<Promise<void>>()

  constructor(config: GatewayConfig, options: ConfigVersionsOptions) {
    this.#options = options
    this.current = this.#create(config)
  }

  replace(config: GatewayConfig): void {
    const before = this.current
    this.current = this.#create(config, before)
    const closed = before.retire().then(() => this.#close(before))
    const over = closed.catch((error) => this.#options.hooks.onFailure(error))
    this.#closing.add(over)
    void over.then(() => this.#closing.delete(over))
  }

  /** Closes all vendors. Requests that are still running are aborted. */
  async close(): Promise<void> {
    await this.#close(this.current)
    await Promise.all([...this.#vendors.values()].map((vendor) => vendor.close()))
    await Promise.all(this.#closing)
  }

  #create(config: GatewayConfig, before?: ConfigVersion): ConfigVersion {
    const { spillway, urlOf, hooks } = this.#options
    const vendors = new Map(
      config.vendors.map((each) => {
        const known = this.#vendors.get(each.name)
        const named = namedLanes(config, each)
        return [each.name, new Vendor(each, urlOf(each), spillway, named, hooks.clock, known)]
      }),
    )
    for (const [name, vendor] of vendors) this.#vendors.set(name, vendor)
    return new ConfigVersion(config, vendors, hooks, before)
  }

  async #close({ vendors }: ConfigVersion): Promise<void> {
    const closing = Array.from(vendors.values(), (vendor) => {
      if (this.#vendors.get(vendor.name) === vendor) this.#vendors.delete(vendor.name)
      return vendor.close()
    })
    await Promise.all(closing)
  }
}
