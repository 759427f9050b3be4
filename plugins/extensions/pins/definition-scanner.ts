import { createHash } from 'node:crypto'
import type { FastifyBaseLogger } from 'fastify'
import { messageOf } from '../../../db/errors.ts'
import type { DefinitionWarning } from '../../../schemas/definitions-api.ts'
import { workers } from '../../base/threads/index.ts'
import { extensionsLimits } from '../limits.ts'
import { definitionKeyOf, type Definition, type DefinitionKind } from './definitions.ts'
import { lookalikeKey, normalizeName } from './lookalike-names.ts'
import type { DefinitionFinding, ScanResult } from './scan/scan.ts'

/**
 * The scan of one catalogue. `digest`: identifies the scanned definitions; undefined if the scan failed. `tools`: the
 * names of all tools in it.
 */
interface CatalogueScan {
  readonly digest: string | undefined
  readonly scan: ScanResult
  readonly tools: readonly string[]
}

const noScan: ScanResult = { findings: [], names: [] }

/** Scans the definitions of servers for content that may poison agents, when they are first read and after changes. */
export class DefinitionScanner {
  readonly #log: Pick<FastifyBaseLogger, 'warn'>
  /** The scans, by server and by `ServerPins.source` of the catalogue. */
  readonly #scans = new Map<string, Map<string, CatalogueScan>>()
  /** The names of the tools of all servers; undefined until needed after a change. */
  #index: NameIndex | undefined
  /** The warnings about each server, cached until a change, since pages that list all servers read them often. */
  readonly #warnings = new Map<string, readonly DefinitionWarning[]>()

  constructor (log: Pick<FastifyBaseLogger, 'warn'>) {
    this.#log = log
  }

  /**
   * Starts to scan the definitions of a catalogue in a worker thread, unless the same definitions were scanned there.
   * @param source the catalogue, as in `ServerPins.source`
   */
  scanInBackground (server: string, source: string, definitions: readonly Definition[]): void {
    const listed = definitions.map((each) => `${definitionKeyOf(each)} ${each.digest}`).join('\n')
    const digest = createHash('sha256').update(listed).digest('base64')
    const scans = this.#scans.get(server) ?? new Map<string, CatalogueScan>()
    this.#scans.set(server, scans)
    const former = scans.get(source)
    if (former?.digest === digest) return
    const tools = definitions.flatMap(({ kind, item }) => kind === 'tool' ? item : [])
    const started = { digest, tools, scan: former?.scan ?? noScan }
    scans.delete(source)
    scans.set(source, started)
    for (const oldest of [...scans.keys()].slice(0, -extensionsLimits.definitionScan.catalogues)) scans.delete(oldest)
    this.#forgetNames()
    void this.#scan(server, definitions).then((scan) => ({ ...started, scan }), (error: unknown) => {
      this.#log.warn({ server, err: error }, `${server}: its definitions could not be checked`)
      const findings = unscannedFindings(definitions[0], messageOf(error))
      return { ...started, digest: undefined, scan: { ...noScan, findings } }
    }).then((ended) => {
      if (scans.get(source) !== started) return
      scans.set(source, ended)
      this.#warnings.delete(server)
    })
  }

  /**
   * Drops the index of names and all warnings, which are computed again on demand. Since names are compared with the
   * names of all other servers, a change of one server may affect the warnings about any other.
   */
  #forgetNames (): void {
    this.#index = undefined
    this.#warnings.clear()
  }

  async #scan (server: string, definitions: readonly Definition[]): Promise<ScanResult> {
    const { text: maxText, time } = extensionsLimits.definitionScan
    let left: number = maxText
    const end = definitions.findIndex(({ text }) => (left -= text.length) < 0)
    const scanned =
      definitions.slice(0, end === -1 ? undefined : end).map(({ kind, item, text }) => ({ kind, item, text }))
    const rest = end === -1 ? [] : unscannedFindings(definitions[end], 'there is too much text')
    const found = await workers.run<ScanResult>('plugins/extensions/pins/scan/scan', scanned, { owner: server, time })
    const scan = { ...found, findings: [...rest, ...found.findings] }
    const [first] = scan.findings
    if (first !== undefined) {
      const { kind, item, place, message } = first
      const more = scan.findings.length > 1 ? ` (and ${scan.findings.length - 1} more remarks)` : ''
      const which = `the ${kind} ${JSON.stringify(item)}${place === '' ? '' : ` (${place})`}`
      this.#log.warn({ server }, `${server}: check ${which}: ${message}${more}`)
    }
    return scan
  }

  /** Returns the warnings about a server's definitions. */
  warningsAbout (server: string): readonly DefinitionWarning[] {
    const scans = [...this.#scans.get(server)?.values() ?? []]
    if (scans.length === 0) return []
    const known = this.#warnings.get(server) ?? this.#warningsOf(server, scans)
    this.#warnings.set(server, known)
    return known
  }

  #warningsOf (server: string, scans: readonly CatalogueScan[]): DefinitionWarning[] {
    const index = this.#index ??= new NameIndex(this.#scans)
    const all = scans.flatMap(({ scan, tools }) => [
      ...scan.findings as DefinitionWarning[],
      ...tools.flatMap((item): DefinitionWarning | [] => {
        const like = index.lookalikeOf(server, item)
        return like === undefined ? [] : { kind: 'tool', item, place: '/name', message: `its name resembles ${like}` }
      }),
      ...scan.names.flatMap(({ kind, item, place, name }): DefinitionWarning | [] => {
        const owner = index.otherServerOf(server, name)
        if (owner === undefined) return []
        const of = `a tool of the server ${JSON.stringify(owner)}`
        const message = `it asks the model to call ${JSON.stringify(name)}, ${of}`
        return { kind: kind as DefinitionKind, item, place, message }
      })
    ])
    const distinct = new Map(all.map((each) => [`${definitionKeyOf(each)}\n${each.place}\n${each.message}`, each]))
    return [...distinct.values()].slice(0, extensionsLimits.definitionScan.warnings)
  }

  /** Removes the scans of deleted servers. */
  forget (servers: readonly string[]): void {
    for (const server of servers) this.#scans.delete(server)
    this.#forgetNames()
  }
}

/** Returns a finding that this definition and the following ones were not scanned; none if there is no definition. */
function unscannedFindings (definition: Definition | undefined, why: string): DefinitionFinding[] {
  const message = `not all definitions were checked: ${why}`
  return definition ? [{ kind: definition.kind, item: definition.item, place: '', message }] : []
}

/** Whether a normalized name has Latin letters only. */
const isPlain = (name: string): boolean => /^[a-z]*$/.test(name)

/** The tools of all servers, by name and by `lookalikeKey`. */
class NameIndex {
  readonly #byName = new Map<string, Set<string>>()
  readonly #byLookalikeKey = new Map<string, Array<{ readonly server: string, readonly tool: string }>>()

  constructor (servers: ReadonlyMap<string, ReadonlyMap<string, CatalogueScan>>) {
    for (const [server, scans] of servers) {
      for (const tool of new Set([...scans.values()].flatMap(({ tools }) => tools))) {
        const owners = this.#byName.get(tool.toLowerCase()) ?? new Set()
        this.#byName.set(tool.toLowerCase(), owners.add(server))
        const key = lookalikeKey(tool)
        const alike = this.#byLookalikeKey.get(key) ?? []
        // A warning names one lookalike, so a bounded number of candidates is enough.
        if (alike.length < 100) alike.push({ server, tool })
        this.#byLookalikeKey.set(key, alike)
      }
    }
  }

  /** Returns the tool of another server that a tool may imitate, as part of a sentence; undefined if there is none. */
  lookalikeOf (server: string, tool: string): string | undefined {
    const plain = normalizeName(tool)
    // Of two names that look alike, the one with digits or non-Latin letters is considered the imitation.
    const found = this.#byLookalikeKey.get(lookalikeKey(tool))?.find((each) =>
      each.server !== server && normalizeName(each.tool) !== plain &&
        (!isPlain(plain) || isPlain(normalizeName(each.tool))))
    return found && `${JSON.stringify(found.tool)}, a tool of the server ${JSON.stringify(found.server)}`
  }

  /** Returns another server that has a tool of this name; undefined if there is none, or if `server` has one itself. */
  otherServerOf (server: string, name: string): string | undefined {
    const owners = this.#byName.get(name)
    return owners === undefined || owners.has(server) ? undefined : owners.values().next().value
  }
}
