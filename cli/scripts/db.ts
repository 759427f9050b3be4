// `tool-hub db migrate|import|export`, in a clone also `npm run db:…`: the operator's
// commands for a database, configured by the same environment as the gateway.
import { rm, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { errorCode } from '../../db/error-code.ts'
import { withoutRecords } from '../../db/json/records.ts'
import { replace } from '../../db/json/write.ts'
import { documentText } from '../../db/document-text.ts'
import type { Driver } from '../../db/postgres/connection/driver.ts'
import { openDatabase } from '../../db/postgres/open.ts'
import { exportDocument, importDocument } from '../../db/postgres/settings/transfer.ts'
import { readSettings } from '../../db/seed.ts'
import type { Vault } from '../../db/store.ts'
import { readEnvironment } from '../../plugins/base/config/index.ts'
import { openVault } from '../../plugins/base/secrets/index.ts'
import { explain } from '../backup/explain.ts'
import { placesOf } from '../backup/places.ts'
import { exits, CommandError } from '../failure.ts'
import { milliseconds, type Env } from '../../schemas/env.ts'
import type { Writer } from '../io.ts'
import type { Report } from './report.ts'
import type { Task } from './task.ts'

const usage = `db migrate                        creates or updates the tables
db import [file] [--replace]      stores a settings file in an empty database; --replace: replaces existing settings
db export [file|-] [--force]      writes the settings to a file, with secrets in plain text; --force: overwrites an existing file;
                     [--masked]   even if secrets cannot be opened: with masks in their places, which db import does not accept

The default for the file is SETTINGS_PATH. DB_URL names the database; ENCRYPTION_KEY or DATA_DIR has the key, as for the gateway.
In a clone, options follow two dashes: npm run db:import -- --replace`

export async function db ({ args, io, report }: Task): Promise<void> {
  const {
    positionals: [command, file, ...more],
    values
  } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      replace: { type: 'boolean', default: false },
      force: { type: 'boolean', default: false },
      masked: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false }
    }
  })
  const work = {
    migrate: async () => {
      report.result({ migrated: true }, 'The tables are up to date.')
    },
    import: importFile,
    export: exportFile
  }[command ?? '']
  if (work === undefined || more.length > 0) throw new CommandError(usage, exits.usage)
  const env = readEnvironment(io.env)
  if (env.DB_URL === undefined) {
    throw new Error('DB_URL is not set: it names the database. Without it, the gateway keeps its settings in a file.')
  }
  const driver = await openDatabase({
    dbUrl: env.DB_URL,
    startupTimeout: milliseconds(env.DB_STARTUP_TIMEOUT),
    info: report.print,
    warn: report.print,
    isExisting: work === exportFile
  })
  try {
    const path = file === '-' ? '-' : resolve(io.cwd, file ?? env.SETTINGS_PATH)
    await work({ driver, vault: await vaultOf(env, io.cwd), path, report, stdout: io.stdout, ...values })
  } finally {
    await driver.end()
  }
}

interface Transfer {
  driver: Driver
  vault: Vault
  path: string
  report: Report
  stdout: Writer
  replace: boolean
  force: boolean
  masked: boolean
}

/** Opens the gateway's vault, so that each of both can open what the other has sealed. */
const vaultOf = async (env: Env, cwd: string): Promise<Vault> =>
  await openVault({ dataDir: placesOf(env, cwd).dataDir, encryptionKey: env.ENCRYPTION_KEY })

async function importFile ({ driver, vault, path, report, replace: mayReplace }: Transfer): Promise<void> {
  const document = await readSettings(path)
  if (document === undefined) throw new Error(`The settings file ${path} does not exist.`)
  await importDocument(driver, vault, withoutRecords(document), mayReplace)
  report.result({ file: path, location: driver.location }, `${path} is stored in the database at ${driver.location}.`)
}

async function exportFile ({ driver, vault, path, report, stdout, force, masked }: Transfer): Promise<void> {
  const exported = await exportDocument(driver, vault)
  if (exported === undefined) throw new Error(`The database at ${driver.location} is empty: nothing was ever stored there.`)
  const { document, locked } = exported
  if (locked.length > 0 && !masked) {
    throw new Error(
      `${locked.join('\n')}\nNothing was written. With --masked, all is written, with masks (••••) in place of these secrets.`
    )
  }
  for (const each of locked) report.print(each)
  const text = documentText(document)
  if (path === '-') {
    // Messages go to stderr, since stdout is the export.
    stdout.write(text)
    return
  }
  await (force ? replace(path, Buffer.from(text)) : writeFile(path, text, { flag: 'wx', mode: 0o600, flush: true })).catch(
    async (error: unknown) => {
      if (errorCode(error) === 'EEXIST') {
        throw new Error(`${path} exists already, and was left as it is. Name another file, or use --force.`)
      }
      // What was written of it is no export, and would stand in the way of the next one.
      if (!force) await rm(path, { force: true }).catch(() => {})
      const advice = 'Name a file in a folder that is there, that this user may write to, and that has room.'
      throw explain(error, { target: path, within: dirname(path), advice })
    }
  )
  const secrets = locked.length === 0
    ? 'holds secrets in plain text'
    : 'holds masks (••••) in place of the secrets that cannot be opened, and others in plain text'
  report.result(
    { file: path, location: driver.location },
    `The database at ${driver.location} was exported to ${path}. The file ${secrets}: only its owner may read it.`
  )
}
