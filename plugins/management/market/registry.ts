import { Value } from '@sinclair/typebox/value'
import type { RegistryEntry, RegistryPage, RegistryQuery } from '../../../schemas/catalogues.ts'
import { problemOf } from '../../../schemas/problem.ts'
import { official, RegistryMeta, ServerJson } from '../../../schemas/server-json.ts'
import { isObject } from '../../../protocol/json.ts'
import { LoopBudget } from '../../../protocol/yield.ts'
import { noSuchError } from '../../base/errors/index.ts'
import type { SourceAnswer, SourceQuery, Source } from './source.ts'
import { toConfigs } from './to-configs.ts'
import { managementLimits } from '../limits.ts'

/** Deleted entries are listed too, with the reason for the deletion. */
const deletedToo = 'include_deleted=true'
/** Max length of a cursor, in characters: a longer one is not handed on, so that the list ends there. */
const longestCursor = 512

/** The MCP registry, through its API v0.1: the entries as it answers them, each with its configs. */
export class Registry {
  readonly #source: Pick<Source, 'ask'>
  readonly #base: string

  /** @param base REGISTRY_URL */
  constructor (source: Pick<Source, 'ask'>, base: string) {
    this.#source = source
    this.#base = base.replace(/\/+$/, '')
  }

  /** One page of the entries. @throws as `Source.ask` */
  async list (query: RegistryQuery, owner: string): Promise<SourceAnswer<RegistryPage>> {
    const given = Object.entries({ limit: 30, ...query }).filter(([, value]) => value !== undefined)
    const parameters = new URLSearchParams(given.sort().map(([name, value]): [string, string] => [name, String(value)]))
    return await this.#ask(`/v0.1/servers?${parameters.toString()}`, pageOf, owner)
  }

  /** All versions of one entry. @throws as `Source.ask` */
  async versions (name: string, owner: string): Promise<SourceAnswer<RegistryPage>> {
    return await this.#ask(`/v0.1/servers/${segment(name)}/versions?${deletedToo}`, pageOf, owner)
  }

  /** One version of one entry. @param version `latest`, or an exact one @throws as `Source.ask` */
  async version (name: string, version: string, owner: string): Promise<SourceAnswer<RegistryEntry>> {
    return await this.#ask(`/v0.1/servers/${segment(name)}/versions/${segment(version)}?${deletedToo}`, entryOf, owner)
  }

  async #ask<Value> (path: string, read: SourceQuery<Value>['read'], owner: string): Promise<SourceAnswer<Value>> {
    return await this.#source.ask({ key: path, url: `${this.#base}${path}`, read }, owner)
  }
}

/** A name as one segment of a path. @throws NoSuch for one that a path cannot hold */
function segment (text: string): string {
  // URLs resolve these.
  if (/^\.{0,2}$/.test(text) || text.length > 255) throw noSuchError('entry in this catalogue', text)
  return encodeURIComponent(text)
}

/** @throws TypeError for what is not a list of entries */
async function pageOf (answer: unknown): Promise<RegistryPage> {
  if (!isObject(answer) || !Array.isArray(answer.servers)) throw new TypeError('there is no list of servers')
  const budget = new LoopBudget()
  const servers: RegistryEntry[] = []
  for (const each of answer.servers.slice(0, managementLimits.catalogues.entries) as unknown[]) {
    servers.push(entryOf(each))
    await budget.pause()
  }
  const next = isObject(answer.metadata) ? answer.metadata.nextCursor : undefined
  const nextCursor = typeof next === 'string' && next !== '' && next.length <= longestCursor ? next : undefined
  return { servers, metadata: { count: servers.length, nextCursor } }
}

/**
 * An entry with what is known of its form. One that breaks the form has a reason in place of its configs, and does not
 * break its page.
 * @throws TypeError for what is not an entry
 */
function entryOf (answer: unknown): RegistryEntry {
  if (!isObject(answer) || !isObject(answer.server)) throw new TypeError('there is no entry')
  // Registries write null where the API has no member.
  const given = { server: withoutNulls(answer.server), meta: isObject(answer._meta) ? withoutNulls(answer._meta) : {} }
  const _meta = Value.Clean(RegistryMeta, given.meta)
  const meta: RegistryMeta = problemOf(RegistryMeta, _meta) ? {} : _meta as RegistryMeta
  const server = Value.Clean(ServerJson, given.server)
  const wrong = problemOf(ServerJson, server)
  if (wrong) {
    const { name } = given.server as { name?: unknown }
    const reason = `the entry does not keep to the form of server.json: "${wrong.path}": ${wrong.message}`
    return {
      server: typeof name === 'string'
        ? { name: name.slice(0, 200) }
        : {},
      _meta: meta,
      configs: [{ from: 'entry', reason }]
    }
  }
  const { status, statusMessage = '' } = meta[official] ?? {}
  const configs = status === 'deleted'
    ? [{ from: 'entry', reason: `it was deleted from the registry${statusMessage === '' ? '' : `: ${statusMessage}`}` }]
    : toConfigs(server as ServerJson)
  return { server: server as ServerJson, _meta: meta, configs }
}

/** A value without members that are null, at any depth. Its depth is bounded where it is parsed. */
function withoutNulls (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).filter(([, each]) => each !== null).map(([key, each]) => [key, withoutNulls(each)])
  )
}
