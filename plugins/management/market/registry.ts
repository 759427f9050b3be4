import { Value } from '@sinclair/typebox/value'
import type { RegistryEntry, RegistryPage, RegistryQuery } from '../../../schemas/catalogues.ts'
import { firstSchemaProblem } from '../../../schemas/problem.ts'
import { officialMetaKey, RegistryMeta, ServerJson } from '../../../schemas/server-json.ts'
import { isObject } from '../../../protocol/json.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import { noSuchError } from '../../base/errors/index.ts'
import type { SourceAnswer, SourceQuery, CatalogueSource } from './source.ts'
import { managementLimits } from '../limits.ts'

/** The query parameter that includes deleted entries, which contain the reason for the deletion. */
const includeDeleted = 'include_deleted=true'
/** Max length of a cursor, in characters. A longer one is ignored, so that the list ends. */
const longestCursor = 512

/**
 * A client of the MCP registry (API v0.1). It returns the registry's entries, each with the configs made from it.
 * Requests at the same time are limited for each `owner`, the caller of the management API (`chargedOwnerOf`).
 */
export class RegistryClient {
  readonly #source: Pick<CatalogueSource, 'ask'>
  readonly #base: string

  /** @param base REGISTRY_URL */
  constructor (source: Pick<CatalogueSource, 'ask'>, base: string) {
    this.#source = source
    this.#base = base.replace(/\/+$/, '')
  }

  /** Returns one page of the registry's entries. @throws the errors of `CatalogueSource.ask` */
  async listEntries (query: RegistryQuery, owner: string): Promise<SourceAnswer<RegistryPage>> {
    const given = Object.entries({ limit: 30, ...query }).filter(([, value]) => value !== undefined)
    const parameters = new URLSearchParams(given.sort().map(([name, value]): [string, string] => [name, String(value)]))
    return await this.#ask(`/v0.1/servers?${parameters.toString()}`, pageOf, owner)
  }

  /** Returns all versions of one entry. @throws the errors of `CatalogueSource.ask` */
  async listVersions (name: string, owner: string): Promise<SourceAnswer<RegistryPage>> {
    return await this.#ask(`/v0.1/servers/${pathSegment(name)}/versions?${includeDeleted}`, pageOf, owner)
  }

  /**
   * Returns one version of one entry.
   * @param version `latest`, or an exact version
   * @throws the errors of `CatalogueSource.ask`
   */
  async findVersion (name: string, version: string, owner: string): Promise<SourceAnswer<RegistryEntry>> {
    return await this.#ask(
      `/v0.1/servers/${pathSegment(name)}/versions/${pathSegment(version)}?${includeDeleted}`, entryOf, owner
    )
  }

  async #ask<Value> (path: string, read: SourceQuery<Value>['convert'], owner: string): Promise<SourceAnswer<Value>> {
    return await this.#source.ask({ key: path, url: `${this.#base}${path}`, convert: read }, owner)
  }
}

/** Encodes a name as one segment of a URL's path. @throws NoSuch for a name that cannot be one segment */
function pathSegment (text: string): string {
  // URL parsers resolve `.` and `..`.
  if (/^\.{0,2}$/.test(text) || text.length > 255) throw noSuchError('entry in this catalogue', text)
  return encodeURIComponent(text)
}

/** Reads a page of entries from a response of the registry. @throws TypeError for any other value */
async function pageOf (answer: unknown): Promise<RegistryPage> {
  if (!isObject(answer) || !Array.isArray(answer.servers)) throw new TypeError('it has no list of servers')
  const budget = new LoopBudget()
  const servers: RegistryEntry[] = []
  for (const each of answer.servers.slice(0, managementLimits.catalogues.answerEntries) as unknown[]) {
    servers.push(await entryOf(each))
    await budget.pause()
  }
  const next = isObject(answer.metadata) ? answer.metadata.nextCursor : undefined
  const nextCursor = typeof next === 'string' && next !== '' && next.length <= longestCursor ? next : undefined
  return { servers, metadata: { count: servers.length, nextCursor } }
}

/**
 * Reads an entry, without unknown members. An invalid entry gets a reason in place of its configs, so that the rest of
 * its page stays usable.
 * @throws TypeError if the value is not an entry
 */
async function entryOf (answer: unknown): Promise<RegistryEntry> {
  if (!isObject(answer) || !isObject(answer.server)) throw new TypeError('it has no entry')
  // Registries write null for absent members.
  const given = { server: withoutNulls(answer.server), meta: isObject(answer._meta) ? withoutNulls(answer._meta) : {} }
  const _meta = Value.Clean(RegistryMeta, given.meta)
  const meta: RegistryMeta = firstSchemaProblem(RegistryMeta, _meta) ? {} : _meta as RegistryMeta
  const server = Value.Clean(ServerJson, given.server)
  const problem = firstSchemaProblem(ServerJson, server)
  if (problem) {
    const { name } = given.server as { name?: unknown }
    const reason = `the entry does not match the schema of server.json: "${problem.path}": ${problem.message}`
    return {
      server: typeof name === 'string' ? { name: name.slice(0, 200) } : {},
      _meta: meta,
      configs: [{ from: 'entry', reason }]
    }
  }
  const { status, statusMessage = '' } = meta[officialMetaKey] ?? {}
  const configs = status === 'deleted'
    ? [{ from: 'entry', reason: `it was deleted from the registry${statusMessage === '' ? '' : `: ${statusMessage}`}` }]
    : (await import('./to-configs.ts')).toConfigs(server as ServerJson)
  return { server: server as ServerJson, _meta: meta, configs }
}

/** Returns a value without null members, at any depth. The recursion is safe, since responses have a max depth. */
function withoutNulls (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).filter(([, each]) => each !== null).map(([key, each]) => [key, withoutNulls(each)])
  )
}
