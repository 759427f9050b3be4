import type { Command } from 'commander'
import { read } from '../../db/document.ts'
import { readSettings } from '../../db/seed.ts'
import { findChildUser } from '../../plugins/config/child-user.ts'
import { readEnvironment } from '../../plugins/config/environment.ts'
import { expand } from '../../plugins/upstream/links/variables.ts'
import { placesOf } from '../backup/places.ts'
import { outputOf } from '../context.ts'
import { Failure } from '../failure.ts'

interface Finding { level: 'error' | 'warning', place: string, message: string }

export function addCheckCommand (program: Command): void {
  program.command('check')
    .description('check the environment and the settings file, without starting anything')
    .action(async (_options, command: Command) => {
      const out = outputOf(command)
      const findings = await check()
      const errors = findings.filter(({ level }) => level === 'error').length
      out.result({ ok: errors === 0, findings }, () => findings.length === 0
        ? out.style('green', 'All is well')
        : findings.map(({ level, place, message }) =>
          `${out.style(level === 'error' ? 'red' : 'yellow', level)} ${place}: ${message}`).join('\n'))
      if (errors > 0) throw new Failure(`${errors} ${errors === 1 ? 'error' : 'errors'}`)
    })
}

/** What is wrong, errors first. */
async function check (): Promise<Finding[]> {
  const findings: Finding[] = []
  const add = (level: Finding['level'], place: string, error: unknown): void => {
    findings.push({ level, place, message: error instanceof Error ? error.message : String(error) })
  }
  let env
  try {
    env = readEnvironment(process.env)
    findChildUser(env.CHILD_USER)
  } catch (error) {
    add('error', 'environment', error)
  }
  if (env === undefined) return findings
  if (env.DB_URL !== undefined) add('warning', 'database', 'its settings are checked by the gateway when it reads them; the log tells')
  const { settings: path } = placesOf(env)
  try {
    const document = await readSettings(path)
    if (document === undefined) {
      if (env.DB_URL === undefined) add('warning', path, 'there is no settings file yet: the first start makes it')
      return findings
    }
    const { snapshot } = read(document, 1)
    const warned = new Set([...snapshot.servers.values()].flatMap(({ name, warnings = [] }) =>
      warnings.map((warning) => `server ${JSON.stringify(name)}: ${warning}`)))
    for (const problem of snapshot.problems) add(warned.has(problem) ? 'warning' : 'error', path, problem)
    for (const { name, config, problem } of snapshot.servers.values()) {
      if (problem !== undefined || config.enabled === false) continue
      for (const warning of expand(config, process.env).warnings) add('warning', path, `server ${JSON.stringify(name)}: ${warning}`)
    }
    for (const group of snapshot.groups.values()) {
      for (const { name } of group.members) {
        if (snapshot.servers.has(name)) continue
        add('warning', path, `group ${JSON.stringify(group.name)} has a server ${JSON.stringify(name)}, which is not there`)
      }
    }
  } catch (error) {
    add('error', path, error)
  }
  return findings.sort((a, b) => Number(a.level === 'warning') - Number(b.level === 'warning'))
}
