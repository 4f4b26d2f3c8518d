"""What real OpenSM makes of partition files and options, against what we read in them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rdma_fabric.inventory.partitions import read_partitions
from rdma_fabric.inventory.subnets import port_keys
from rdma_fabric.platforms import _opensm_files as texts
from tests.judges import opensm_subnet
from tests.judges.opensm_subnet import HOSTS, Subnet

pytestmark = pytest.mark.judge("opensm")

SM, A, B = HOSTS.values()
DEFAULT = "Default=0x7fff, ipoib, mtu=5, defmember=full : ALL, ALL_SWITCHES=full, SELF=full ;\n"
BOTH = "allow_both_pkeys TRUE\n"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subnet]:
    if reason := opensm_subnet.missing():
        pytest.skip(reason)
    with opensm_subnet.subnet(tmp_path_factory.mktemp("osm")) as found:
        yield found


FILES = {
    "everybody": DEFAULT,
    "no rule for Default": f"a=0x10 : {A}=full ;",
    "Default by its name": "Default : ALL_CAS=full ;",
    "some of Default": f"Default=0x7fff : {A}=full ;",
    "a tenant": f"{DEFAULT}a=0x10, ipoib, mtu=5, sl=1 : {A}=full, SELF=limited ;",
    "limited by default": f"{DEFAULT}a=0x10 : {A}, {B}=full ;",
    "defmember": f"{DEFAULT}a=0x10, defmember=full : {A}, {B}=limited ;",
    "both": f"{DEFAULT}a=0x10 : {A}=both, {B}=full ;",
    "both and then limited": f"{DEFAULT}a=0x10 : {A}=both, {A}=limited ;",
    "the last word counts": f"{DEFAULT}a=0x10 : {A}=limited, {A}=full ;",
    "ALL overwrites": f"{DEFAULT}a=0x10 : {A}=full, ALL=limited ;",
    "ALL, then one": f"{DEFAULT}a=0x10 : ALL=limited, {A}=full ;",
    "adapters only": f"{DEFAULT}a=0x10 : {A}=limited, ALL_CAS=full ;",
    "two statements": f"{DEFAULT}a=0x10 : {A}=full ;\na=0x10 : {B}=limited, {A}=limited ;",
    "two names": f"{DEFAULT}a=0x10 : {A}=full ;\nb=0x10 : {B}=full ;",
    "the membership bit": f"{DEFAULT}a=0x8010 : {A}=full ;",
    "no name": f"{DEFAULT}0x10 : {A}=full ;",
    "many lines": f"{DEFAULT}a=0x10 :\n\t{A}=full,\n\t{B}=full ;",
    "a semicolon alone": f"{DEFAULT}a=0x10 :\n\t{A}=full,\n\t{B}=full\n;",
    "a semicolon after a comment": f"{DEFAULT}a=0x10 :\n\t{A}=full # all\n\t; b=0x11 : {B}=full ;",
    "comments": f"# {{\n{DEFAULT}a=0x10 : # of\n{A}=full ; # {B}=full ;",
    "nobody": f"{DEFAULT}a=0x10 : NONE ;",
    "a port that is not there": f"{DEFAULT}a=0x10 : 0x0002c903000000ff=full ;",
    "a short GUID": f"{DEFAULT}a=0x10 : 0x2c90300000021=full ;",
    "a prefix of ALL": f"{DEFAULT}a=0x10 : AL=full ;",
    "a prefix of full": f"{DEFAULT}a=0x10 : {A}=f, {B}=x ;",
    "a prefix of a flag": f"{DEFAULT}a=0x10, def=full : {A} ;",
    "an unknown flag": f"{DEFAULT}a=0x10, foo=1 : {A}=full ;",
    "a level out of range": f"{DEFAULT}a=0x10, sl=16 : {A}=full ;",
    "groups": f"{DEFAULT}a=0x10, ipoib, mtu=5 :\n mgid=ff12:401b::1\n mgid=ff15::7\n {A}=full ;",
    "a member after a group": f"{DEFAULT}a=0x10, ipoib : {B}=full,\n mgid=ff12:401b::1, {A}=full ;",
    "no end": f"{DEFAULT}a=0x10 : {A}=full",
    "no colon": f"{DEFAULT}a=0x10, ipoib\n",
    "a colon too late": f"{DEFAULT}a=0x10,\n ipoib : {A}=full ;",
    "no number": f"{DEFAULT}a=0x10zz : {A}=full ;",
    "an empty number": f"{DEFAULT}a= : {A}=full ;",
    "a name as GUID": f"{DEFAULT}a=0x10 : {A}=full, gpu02=full ;",
    "a GUID with colons": f"{DEFAULT}a=0x10 : 00:02:c9:03:00:00:00:21=full ;",
    "zero": f"{DEFAULT}a=0x10 : {A}=full, 0x0=full ;",
    "its own port behind SELF": f"{DEFAULT}a=0x10 : {A}=full, SELF=limited, {SM}=limited ;",
    "two colons": f"{DEFAULT}a=0x10 :: {A}=full ;",
    "a colon in a GUID": f"{DEFAULT}a=0x10 : 0x0002c903000000:21=full ;",
    "a comma behind the end": f"{DEFAULT}a=0x10 : {A}=full ;,",
    "commas too many": f"{DEFAULT}a=0x10,, ipoib, : , {A}=full,, {B}=full, ;",
    "a carriage return": f"{DEFAULT}a=0x10 : {A}=full ;\r\n",
    "a carriage return in a comment": f"{DEFAULT}# all\r\na=0x10 : {A}=full ;",
    "a space of another kind": f"{DEFAULT}a=0x10 :\u00a0{A}=full ;",
    "nothing": "",
    "only a comment": "# all of it\n",
    "the second statement is broken": f"a=0x10 : {A}=full ;\nb=0x11 : gpu02 ;",
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_members_are_who_opensm_says(real: Subnet, text: str) -> None:
    """P_Key tables of all ports, and whether the file is used at all."""
    ours = read_partitions(text)
    said = real.sweep(text, BOTH if "both" in text else "")
    assert ours.dropped == ("retrying with default config" in said), said
    for name, guid in HOSTS.items():
        wanted = (0xFFFF,) if ours.dropped else port_keys(ours.partitions, guid, (SM,))
        assert tuple(sorted(real.keys(name))) == wanted, name


def test_a_carriage_return_drops_a_policy_and_is_space_in_options(real: Subnet) -> None:
    policy = real.folder / "policy.conf"
    options = f"qos TRUE\nqos_policy_file {policy}\nqos_sl2vl {','.join(['0', '1', *['0'] * 14])}\n"
    text = "qos-ulps\n any, pkey 0x0010: 1\n default: 0\nend-qos-ulps\n"
    for one, dropped in ((text, False), (text.replace("\n", "\r\n"), True)):
        policy.write_bytes(one.encode())
        said = real.sweep(f"{DEFAULT}a=0x10 : ALL=full ;\n", options)
        assert ("Failed parsing QoS policy file" in said) == dropped == bool(texts.returns(one))
        assert texts.read_levels(one) == (
            ("default: 0",) if dropped else ("any, pkey 0x0010: 1", "default: 0")
        )
    policy.write_text(text, encoding="utf-8")
    said = real.sweep(f"{DEFAULT}a=0x10 : ALL=full ;\n", options.replace("\n", "\r\n"))
    assert "Unrecognized" not in said and "ERR AC" not in said
    assert "| 0| 1| 0| 0|" in real.ask("sm", "smpquery", "-D", "sl2vl", "0")


def test_engine_file_without_a_file_is_minhop(real: Subnet) -> None:
    options = "routing_engine file,updn\nlog_flags 0x47\n"
    said = real.sweep(DEFAULT, options)
    assert "LFTs file name is not given" in said and "building routing with 'updn'" not in said
    said = real.sweep(DEFAULT, f"{options}lfts_file {real.folder}/nothing\n")
    assert "Can't open ucast dump file" in said and "building routing with 'updn'" in said


def test_a_file_that_is_not_used_is_a_problem() -> None:
    """Whatever OpenSM drops, or takes for something else, is refused before it gets there."""
    sound = {
        *("everybody", "no rule for Default", "Default by its name", "some of Default", "a tenant", "both"),
        *("limited by default", "defmember", "ALL, then one", "no name", "many lines", "comments", "groups"),
        *("two names", "a port that is not there", "a short GUID", "a carriage return in a comment"),
        *("commas too many", "its own port behind SELF"),
    }
    assert {name for name, text in FILES.items() if not read_partitions(text).problems} == sound


def test_the_first_index(real: Subnet) -> None:
    text = f"{DEFAULT}a=0x10, indx0 : {A}=full ;"
    real.sweep(text)
    assert real.keys("a") == (0x8010, 0xFFFF) and real.keys("b") == (0xFFFF,)
    tenant = read_partitions(text).partitions.named("a")
    assert tenant is not None and tenant.index0
    assert texts.statement(tenant).head == "a=0x0010, indx0, sl=0"
