import { Value } from '@sinclair/typebox/value'
import { isObject } from '../../../protocol/json.ts'
import { separatorWarning } from '../../../schemas/names.ts'
import { withTodaysNames } from '../../../schemas/smart-routing.ts'
import { SystemSections } from '../../../schemas/system.ts'
import { errors } from '../../base/errors/index.ts'
import type { Principal, Settings } from '../../settings/index.ts'
import { isMask, maskConfig } from '../../base/secrets/index.ts'
import { checkSections, checkTargets } from './checks.ts'
import {
  legacyKeyIgnored, legacyKeyOf, legacyKeyOfGuest, legacyKeyWarning, legacyPeople
} from '../../identity/index.ts'
import { merge } from './merge.ts'

type Json = Record<string, unknown>

/** The members that users who are not admins may see, since clients need them. `true`: the section is not an object. */
const open: Readonly<Record<string, true | readonly string[]>> = {
  routing: ['enableGlobalRoute', 'enableGroupNameRoute', 'enableBearerAuth', 'bearerAuthHeaderName', 'skipAuth'],
  install: ['baseUrl'],
  smartRouting: ['enabled'],
  toolResultCompression: ['enabled'],
  oauthServer: ['enabled'],
  nameSeparator: true,
  enableSessionRebuild: true
}

/** The system configuration, as the management API reads and writes it. */
export class System {
  readonly #settings: Settings
  readonly #warn: (sentence: string) => void

  /** @param warn logs a warning for the operator */
  constructor (settings: Settings, warn: (sentence: string) => void) {
    this.#settings = settings
    this.#warn = warn
  }

  /** The configuration in force, defaults filled in and secrets masked; for users who are not admins only the `open` members. */
  get (principal: Principal): Json {
    const shown = show(this.#settings.current.system)
    if (principal.isAdmin) return shown
    return Object.fromEntries(Object.entries(open).map(([name, members]): [string, unknown] => {
      const section = shown[name]
      if (members === true) return [name, section]
      return [name, Object.fromEntries(Object.entries(section as Json).filter(([key]) => members.includes(key)))]
    }))
  }

  /**
   * Changes the sent members, at once.
   * @returns the configuration as `get` returns it, and warnings about a sent `routing.bearerAuthKey` or `nameSeparator`
   * @throws InvalidInput
   */
  async update (principal: Principal, body: Json): Promise<{ data: Json, warning?: string }> {
    if (Object.keys(body).length === 0) {
      throw new errors.InvalidInput(
        'The body names no section; it takes routing, install, smartRouting, toolResultCompression, mcpRouter, ' +
        'nameSeparator, enableSessionRebuild and oauthServer'
      )
    }
    let warning: string | undefined
    await this.#settings.change(({ system, keys, users }) => {
      // Clients make a key up when bearer authentication is switched on. Beside keys that exist it would open everything unasked.
      const hasKeys = keys.size > 0 || system.bearerAuthKeyMigrated === true
      const token = legacyKeyIn(body)
      // A key rests on the rights of who makes it.
      const isTaken = token !== undefined && !hasKeys && principal.kind !== 'guest'
      if (token !== undefined) warning = isTaken ? legacyKeyWarning : hasKeys ? legacyKeyIgnored : legacyKeyOfGuest
      const sent = renamed(isTaken ? body : withoutLegacyKey(body))
      const stored = renamed(system)
      const next = merge(stored, sent, show(system), SystemSections)
      checkSections(sent)
      checkTargets(sent, stored, next)
      if (!isTaken) return [{ entity: 'systemConfig', value: next }]
      const key = legacyKeyOf(token, legacyPeople(users, principal))
      const { bearerAuthKey: _, ...routing } = next.routing as Json
      return [
        { entity: 'bearerKeys', key: key.id, value: key },
        { entity: 'systemConfig', value: { ...next, routing, bearerAuthKeyMigrated: true } }
      ]
    }, principal)
    if (warning === legacyKeyWarning) this.#warn(warning)
    const sentences = [warning, separatorWarning(body.nameSeparator)].filter((each) => each !== undefined)
    return { data: this.get(principal), warning: sentences.length === 0 ? undefined : sentences.join('. ') }
  }
}

/** The `routing.bearerAuthKey` of a sent configuration; undefined: it has none. */
function legacyKeyIn ({ routing }: Json): string | undefined {
  const key = isObject(routing) ? routing.bearerAuthKey : undefined
  return typeof key === 'string' && key !== '' && !isMask(key) ? key : undefined
}

function withoutLegacyKey (body: Json): Json {
  if (!isObject(body.routing) || legacyKeyIn(body) === undefined) return body
  const { bearerAuthKey: _, ...routing } = body.routing
  return { ...body, routing }
}

/** The configuration with today's names of members: files and clients may use former ones. */
function renamed (system: Json): Json {
  const { smartRouting } = system
  return isObject(smartRouting) ? { ...system, smartRouting: withTodaysNames(smartRouting) } : system
}

/** The configuration as a GET answers it to an admin. */
function show (system: Json): Json {
  const sections: Json = { routing: {}, install: {}, smartRouting: {}, toolResultCompression: {}, mcpRouter: {}, oauthServer: {} }
  const given = Object.fromEntries(Object.entries(renamed(system)).filter(([, value]) => value !== undefined && value !== null))
  return maskConfig(Value.Default(SystemSections, structuredClone({ ...sections, ...given })) as Json)
}
