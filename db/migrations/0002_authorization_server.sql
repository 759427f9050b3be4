CREATE TABLE "login_states" (
	"hash" text PRIMARY KEY NOT NULL,
	"uid" text,
	"username" text,
	"data" jsonb NOT NULL,
	"sealed" text,
	"created" timestamp with time zone NOT NULL,
	"expires" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "oauth_clients" (
	"key" text PRIMARY KEY NOT NULL,
	"origin" text NOT NULL,
	"data" text NOT NULL,
	"unknown" jsonb,
	"sealed" text,
	"last_used" timestamp with time zone,
	"idle_since" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "oauth_consents" (
	"username" text NOT NULL,
	"client_key" text NOT NULL,
	"data" text NOT NULL,
	"granted" timestamp with time zone NOT NULL,
	CONSTRAINT "oauth_consents_username_client_key_pk" PRIMARY KEY("username","client_key")
);
--> statement-breakpoint
ALTER TABLE "token_families" ADD COLUMN "mark" text;--> statement-breakpoint
ALTER TABLE "token_families" ADD COLUMN "revoked_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "login_states_uid" ON "login_states" USING btree ("uid");--> statement-breakpoint
CREATE INDEX "login_states_user" ON "login_states" USING btree ("username","created");--> statement-breakpoint
CREATE INDEX "login_states_created" ON "login_states" USING btree ("created");--> statement-breakpoint
CREATE INDEX "login_states_expires" ON "login_states" USING btree ("expires");--> statement-breakpoint
CREATE INDEX "oauth_clients_idle" ON "oauth_clients" USING btree ("idle_since") WHERE "oauth_clients"."origin" = 'registered';--> statement-breakpoint
CREATE INDEX "oauth_consents_client" ON "oauth_consents" USING btree ("client_key");--> statement-breakpoint
CREATE INDEX "oauth_consents_granted" ON "oauth_consents" USING btree ("granted");--> statement-breakpoint
CREATE INDEX "token_families_revoked" ON "token_families" USING btree ("revoked_at");