import type { Command } from 'commander'
import { type CommandRun, type MaintenanceContext, MaintenanceReporter } from '../context.ts'
import { CommandError, exitCodes, printError } from '../errors.ts'

interface BackupOptions { withKey?: boolean, force?: boolean }
interface RestoreOptions { replace?: boolean, keepTokens?: boolean, withoutKey?: boolean }
interface ImportOptions { replace?: boolean }
interface ExportOptions { force?: boolean, masked?: boolean }

/**
 * Registers the commands `backup`, `restore` and `db`, which read and write the gateway's files and database directly.
 * The modules of these commands load the database drivers, so they are imported only when a command runs.
 */
export function addMaintenanceCommands (program: Command, run: CommandRun): void {
  program.command('backup')
    .description(
      'write settings, tokens and bundles to one file; the gateway may keep running, unless its database is pglite://'
    )
    .argument('[file]', 'default: tool-hub-<time>.zip in this folder')
    .option('--with-key', 'also include the key file of DATA_DIR, which decrypts all secrets')
    .option('--force', 'overwrite an existing file')
    .action(async (file: string | undefined, { withKey = false, force = false }: BackupOptions, command: Command) => {
      const { createBackup } = await import('../backup/create.ts')
      await perform(run, command, async (task) => { await createBackup(task, { file, withKey, force }) })
    })

  program.command('restore')
    .description(
      'restore a backup, as a whole or not at all, to the settings file or the database; the gateway must be stopped'
    )
    .argument('<file>')
    .option('--replace', 'replace existing settings')
    .option('--keep-tokens', 'with empty settings: the tokens in the backup stay valid; use it only if no password ' +
      'has changed since')
    .option('--without-key', 'even if secrets cannot be decrypted')
    .action(async (file: string, options: RestoreOptions, command: Command) => {
      const { replace = false, keepTokens = false, withoutKey = false } = options
      const { restoreBackup } = await import('../backup/restore.ts')
      await perform(
        run, command, async (task) => { await restoreBackup(task, { file, replace, keepTokens, withoutKey }) }
      )
    })

  addDatabaseCommands(program, run)
}

function addDatabaseCommands (program: Command, run: CommandRun): void {
  const db = program.command('db')
    .description('create the tables of a database, import a settings file, or export one')
    .addHelpText('after', `
The default for the file is SETTINGS_PATH. DB_URL is the database, and the key comes from ENCRYPTION_KEY or DATA_DIR,
as for the gateway.
In a clone, put two dashes before options: npm run db:import -- --replace`)

  db.command('migrate')
    .description('create or update the tables')
    .action(async (_options, command: Command) => {
      const { migrateDatabase: migrate } = await import('../backup/database.ts')
      await perform(run, command, migrate)
    })

  db.command('import')
    .description('store a settings file in an empty database')
    .argument('[file]')
    .option('--replace', 'replace existing settings')
    .action(async (file: string | undefined, { replace = false }: ImportOptions, command: Command) => {
      const { importSettings } = await import('../backup/database.ts')
      await perform(run, command, async (task) => { await importSettings(task, { file, replace }) })
    })

  db.command('export')
    .description('write the settings to a file, with secrets in plain text')
    .argument('[file]', '- writes to stdout')
    .option('--force', 'overwrite an existing file')
    .option('--masked', 'even if secrets cannot be decrypted; they are masked, and db import does not accept the file')
    .action(async (file: string | undefined, { force = false, masked = false }: ExportOptions, command: Command) => {
      const { exportSettings } = await import('../backup/database.ts')
      await perform(run, command, async (task) => { await exportSettings(task, { file, force, masked }) })
    })
}

/** Runs a maintenance command. An error is printed without the prefix `tool-hub: `, and sets the exit code. */
async function perform (
  run: CommandRun, command: Command, work: (task: MaintenanceContext) => Promise<void>
): Promise<void> {
  const { json: isJson = false, url } = command.optsWithGlobals<{ json?: boolean, url?: string }>()
  try {
    if (url !== undefined) {
      throw new CommandError(
        `${command.name()} works on the files and the database of this machine's gateway. Run it there, without --url.`,
        exitCodes.usage
      )
    }
    await work({ io: run, report: new MaintenanceReporter(run, isJson) })
  } catch (error) {
    run.exitCode = printError(error, run, { isJson, prefix: '' })
  }
}
