import type { CatalogueCache } from '../../../../db/store.ts'
import { loadOnce } from '../../../base/config/index.ts'
import { BoundedMap } from '../../../base/limits/index.ts'
import type { SearchHit } from '../answer.ts'
import { wordCodeOf, ToolUses } from './uses.ts'
import { extensionsLimits } from '../../limits.ts'

const bounds = extensionsLimits.smartRouting.learning

/**
 * The last search of a principal. `codes`: the codes of the query's words. `found`: the best results, as `server tool`.
 * `at`: the time, in ms.
 */
interface LastSearch { readonly codes: readonly number[], readonly found: ReadonlySet<string>, readonly at: number }

interface LearningDeps {
  readonly cache: Pick<CatalogueCache, 'readUses' | 'writeUses'>
  /** Returns the names of the tools that a server lists now; undefined if its list is unknown. */
  readonly listed: (server: string) => ReadonlySet<string> | undefined
  readonly warn: (error: unknown) => void
  /** A clock, in ms. */
  readonly now?: () => number
}

const keyOf = (server: string, tool: string): string => `${server} ${tool}`

/**
 * Learns which tools are called after a search: a tool that was found and then called by the same principal is counted
 * for the words of the query. In later searches, the counts decide between tools with almost the same score. The
 * counts are stored with the server's catalogue.
 */
export class ToolUseLearning {
  readonly #deps: LearningDeps
  readonly #now: () => number
  readonly #searches = new BoundedMap<string, LastSearch>(bounds.principals)
  readonly #servers = new BoundedMap<string, () => Promise<ToolUses>>(bounds.servers)
  readonly #changed = new Set<string>()
  /** Settles when all calls so far are counted. */
  #counting: Promise<void> = Promise.resolve()
  #timer: NodeJS.Timeout | undefined

  constructor (deps: LearningDeps) {
    this.#deps = deps
    this.#now = deps.now ?? (() => performance.now())
  }

  /**
   * Moves tools that were called after similar queries before others with almost the same score. Remembers the search,
   * so that `countCall` can count the calls that follow it.
   * @param words the words of the query
   * @param found the found tools, best first, with scores from 0 to 1
   */
  async rankAndRemember (
    principal: string, words: readonly string[], found: readonly SearchHit[]
  ): Promise<SearchHit[]> {
    await this.#counting
    const codes = [...new Set(words)].slice(0, bounds.wordsOfQuery).map(wordCodeOf)
    const uses = new Map<string, ToolUses | undefined>()
    for (const { tool } of found) if (!uses.has(tool.server)) uses.set(tool.server, await this.#usesOf(tool.server))
    const lifted = found.map((hit) => {
      const { tool, score } = hit
      return {
        ...hit,
        score: score + bounds.margin * (uses.get(tool.server)?.shareOfUsedWords(tool.ownName, codes) ?? 0)
      }
    })
    const highest = lifted.reduce((most, { score }) => Math.max(most, score), 1)
    const ranked = lifted.sort((a, b) => b.score - a.score).map((hit) => ({ ...hit, score: hit.score / highest }))
    const best = ranked.slice(0, bounds.found).map(({ tool }) => keyOf(tool.server, tool.ownName))
    this.#searches.setNewest(principal, { codes, found: new Set(best), at: this.#now() })
    return ranked
  }

  /**
   * Counts a successful call by `call_tool`, if the principal's last search was recent and found the tool.
   * @param tool the server's own name of the tool
   */
  countCall (principal: string, server: string, tool: string): void {
    const search = this.#searches.get(principal)
    if (!search || this.#now() - search.at > bounds.time || !search.found.has(keyOf(server, tool))) return
    this.#counting = this.#counting.then(async () => {
      const uses = await this.#usesOf(server)
      if (!uses) return
      uses.count(tool, search.codes)
      this.#changed.add(server)
      this.#timer ??= setTimeout(() => { void this.#store() }, bounds.delay).unref()
    })
  }

  /** Stores the calls that were counted since the last write. */
  async close (): Promise<void> {
    await this.#counting
    clearTimeout(this.#timer)
    await this.#store()
  }

  async #store (): Promise<void> {
    this.#timer = undefined
    const servers = [...this.#changed]
    this.#changed.clear()
    for (const server of servers) {
      const uses = await this.#usesOf(server)
      if (!uses) continue
      const listed = this.#deps.listed(server)
      if (listed) uses.keepOnly(listed)
      await this.#deps.cache.writeUses(server, uses.toText()).catch(this.#deps.warn)
    }
  }

  /** Returns the uses of a server's tools; undefined if they cannot be read now. */
  async #usesOf (server: string): Promise<ToolUses | undefined> {
    const load = this.#servers.get(server) ??
      loadOnce(async () => ToolUses.fromText(await this.#deps.cache.readUses(server)))
    this.#servers.set(server, load)
    try {
      return await load()
    } catch (error) {
      this.#deps.warn(error)
      return undefined
    }
  }
}
