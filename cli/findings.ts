import { messageOf } from '../db/errors.ts'
import type { SettingsDocument } from '../db/apply.ts'
import { parseSnapshot } from '../db/document.ts'
import { readSettings } from '../db/seed.ts'
import { readEnvironment } from '../plugins/base/config/index.ts'
import { danglingReferenceWarnings } from '../plugins/settings/index.ts'
import { expandVariables } from '../plugins/upstream/index.ts'
import { durationUnitWarnings, misspeltVariableWarnings } from '../schemas/read-env.ts'
import type { Env } from '../schemas/env.ts'
import { gatewayPathsOf } from './gateway-paths.ts'
import type { Environment } from './io.ts'
import { rehearseStart } from './rehearsal.ts'

/** A problem that `tool-hub check` reports. `place`: where it is, such as `environment` or the settings file. */
interface Finding { level: 'error' | 'warning', place: string, message: string }

/**
 * Returns the problems of the environment and the settings file, errors before warnings.
 * @param cwd the folder that relative paths start from
 */
export async function findConfigurationProblems (environment: Environment, cwd = '.'): Promise<Finding[]> {
  const findings: Finding[] = []
  const add: AddFinding = (level, place, error) => {
    findings.push({ level, place, message: messageOf(error) })
  }
  let env
  try {
    env = readEnvironment(environment)
  } catch (error) {
    add('error', 'environment', error)
    return findings
  }
  const doubts = [...durationUnitWarnings(environment), ...misspeltVariableWarnings(environment)]
  for (const doubt of doubts) add('warning', 'environment', doubt)
  const paths = gatewayPathsOf(env, cwd)
  const document = await settingsOf(paths.settings, env, environment, add)
  const settings = env.DB_URL === undefined ? document ?? {} : {}
  const { errors, warnings } = await rehearseStart(env, paths, settings, environment)
  for (const error of errors) add('error', 'environment', error)
  const known = new Set(findings.map(({ message }) => message))
  for (const warning of warnings) if (!known.has(warning)) add('warning', 'environment', warning)
  return findings.sort((a, b) => Number(a.level === 'warning') - Number(b.level === 'warning'))
}

type AddFinding = (level: Finding['level'], place: string, error: unknown) => void

/** Reads the settings file, and adds findings about it. @returns its content; undefined if there is no usable file */
async function settingsOf (
  path: string, env: Env, environment: Environment, add: AddFinding
): Promise<SettingsDocument | undefined> {
  if (env.DB_URL !== undefined) {
    add('warning', 'database', 'the gateway checks the settings in it when it reads them; see the log')
  }
  try {
    const document = await readSettings(path)
    if (document === undefined) {
      if (env.DB_URL === undefined) add('warning', path, 'there is no settings file yet: the first start creates it')
      return undefined
    }
    const { snapshot } = parseSnapshot(document, 1)
    const warned = new Set(snapshot.warnings)
    for (const problem of snapshot.problems) add(warned.has(problem) ? 'warning' : 'error', path, problem)
    for (const { name, config, problem } of snapshot.servers.values()) {
      if (problem !== undefined || config.enabled === false) continue
      const { warnings } = expandVariables(config, environment)
      for (const warning of warnings) add('warning', path, `server ${JSON.stringify(name)}: ${warning}`)
    }
    for (const warning of danglingReferenceWarnings(snapshot)) add('warning', path, warning)
    return document
  } catch (error) {
    add('error', path, error)
    return undefined
  }
}
