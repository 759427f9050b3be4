import { messageOf } from '../db/errors.ts'
import type { Document } from '../db/apply.ts'
import { read } from '../db/document.ts'
import { readSettings } from '../db/seed.ts'
import { readEnvironment } from '../plugins/base/config/index.ts'
import { namesOfNothing } from '../plugins/settings/index.ts'
import { expandVariables } from '../plugins/upstream/index.ts'
import { doubtsOf, misspeltIn } from '../schemas/read-env.ts'
import type { Env } from '../schemas/env.ts'
import { placesOf } from './places.ts'
import type { Environment } from './io.ts'
import { rehearse } from './rehearsal.ts'

interface Finding { level: 'error' | 'warning', place: string, message: string }

/**
 * The problems of environment and settings, errors before warnings.
 * @param cwd the folder that relative paths start from
 */
export async function findProblems (environment: Environment, cwd = '.'): Promise<Finding[]> {
  const findings: Finding[] = []
  const add: Add = (level, place, error) => {
    findings.push({ level, place, message: messageOf(error) })
  }
  let env
  try {
    env = readEnvironment(environment)
  } catch (error) {
    add('error', 'environment', error)
    return findings
  }
  for (const doubt of [...doubtsOf(environment), ...misspeltIn(environment)]) add('warning', 'environment', doubt)
  const places = placesOf(env, cwd)
  const document = await settingsOf(places.settings, env, environment, add)
  const { errors, warnings } = await rehearse(env, places, env.DB_URL === undefined ? document ?? {} : {}, environment)
  for (const error of errors) add('error', 'environment', error)
  const known = new Set(findings.map(({ message }) => message))
  for (const warning of warnings) if (!known.has(warning)) add('warning', 'environment', warning)
  return findings.sort((a, b) => Number(a.level === 'warning') - Number(b.level === 'warning'))
}

type Add = (level: Finding['level'], place: string, error: unknown) => void

/** Reads the settings file and adds its problems. @returns undefined without a usable file */
async function settingsOf (path: string, env: Env, environment: Environment, add: Add): Promise<Document | undefined> {
  if (env.DB_URL !== undefined) {
    add('warning', 'database', 'its settings are checked by the gateway when it reads them; the log tells')
  }
  try {
    const document = await readSettings(path)
    if (document === undefined) {
      if (env.DB_URL === undefined) add('warning', path, 'there is no settings file yet: the first start makes it')
      return undefined
    }
    const { snapshot } = read(document, 1)
    const warned = new Set(snapshot.warnings)
    for (const problem of snapshot.problems) add(warned.has(problem) ? 'warning' : 'error', path, problem)
    for (const { name, config, problem } of snapshot.servers.values()) {
      if (problem !== undefined || config.enabled === false) continue
      const { warnings } = expandVariables(config, environment)
      for (const warning of warnings) add('warning', path, `server ${JSON.stringify(name)}: ${warning}`)
    }
    for (const warning of namesOfNothing(snapshot)) add('warning', path, warning)
    return document
  } catch (error) {
    add('error', path, error)
    return undefined
  }
}
